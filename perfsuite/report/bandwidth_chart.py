"""Bandwidth over the working set, as a picture of lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, CPU, Rate, Resource, Survey
from perfsuite.records.chart import Axis, Line, Scale, XYChart, XYPanel
from perfsuite.units import format_bytes, format_bytes_per_s, format_count, to_giga_per_s, to_mebibytes

_MOST_COLUMNS = 2
_X_AXIS = Axis(label="working set, all arrays together (MiB)", scale=Scale.LOG2)
_Y_AXIS = Axis(label="bandwidth (GB/s)", scale=Scale.LOG2)


class _Rung(NamedTuple):
    processor: str
    n_threads: int | None
    kind: str
    held_bytes: int
    rate: Rate

    @property
    def subject(self) -> tuple[str, int | None]:
        """What has a panel of its own."""
        return self.processor, self.n_threads


def bandwidth_chart(survey: Survey) -> XYChart:
    """Return the best bandwidth over the working set, with a band down to the median of the rounds.

    One panel for each processor and number of threads. Raises PerfsuiteError where no bandwidth was measured.
    """
    rungs = sorted(_rungs(survey), key=lambda rung: rung.held_bytes)
    if not rungs:
        raise PerfsuiteError("roofline: no bandwidth was measured, so there is nothing to draw; measure the ceilings")
    subjects = sorted({rung.subject for rung in rungs}, key=lambda each: (each[0] != CPU, each[0], each[1] or 0))
    return XYChart(
        title=_finding(rungs),
        note="lines are the fastest round, bands reach down to the median one; every array read or written counts",
        n_columns=min(_MOST_COLUMNS, len(subjects)),
        panels=tuple(_panel(subject, [rung for rung in rungs if rung.subject == subject]) for subject in subjects),
    )


def _rungs(survey: Survey) -> Iterator[_Rung]:
    for each in survey.ceilings:
        if each.resource is Resource.BANDWIDTH and each.rate and each.working_set_bytes:
            yield _Rung(each.processor, each.n_threads, each.kind, each.working_set_bytes, each.rate)


def _panel(subject: tuple[str, int | None], rungs: list[_Rung]) -> XYPanel:
    lines = (_line(kind, [rung for rung in rungs if rung.kind == kind]) for kind in BANDWIDTH_KINDS)
    return XYPanel(title=_name(*subject), x_axis=_X_AXIS, y_axis=_Y_AXIS, lines=tuple(line for line in lines if line.x))


def _line(kind: str, rungs: list[_Rung]) -> Line:
    return Line(
        label=kind,
        x=tuple(to_mebibytes(rung.held_bytes) for rung in rungs),
        y=tuple(to_giga_per_s(rung.rate.best_per_s) for rung in rungs),
        low_y=tuple(to_giga_per_s(rung.rate.median_per_s) for rung in rungs),
    )


def _name(processor: str, n_threads: int | None) -> str:
    return processor if n_threads is None else f"{processor}, {format_count(n_threads, 'thread')}"


def _finding(rungs: list[_Rung]) -> str:
    """Tell the fastest rung, and what the same use of the same processor has over its largest working set."""
    top = max(rungs, key=lambda rung: rung.rate.best_per_s)
    memory = [rung for rung in rungs if (rung.subject, rung.kind) == (top.subject, top.kind)][-1]
    rates = [format_bytes_per_s(rung.rate.best_per_s) for rung in (top, memory)]
    return (
        f"{_name(*top.subject)}: {top.kind} has {rates[0]} over {format_bytes(top.held_bytes)} and {rates[1]} over "
        f"{format_bytes(memory.held_bytes)}"
    )
