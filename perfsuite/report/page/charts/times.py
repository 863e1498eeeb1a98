"""Phases, the most expensive operators of each phase, and kernels: measured, expected, floor and baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.records.judgement import Judgement
from perfsuite.report.page.charts.figure import Figure
from perfsuite.report.page.charts.names import case_name, phase_of, role_of, short_names
from perfsuite.report.page.charts.time_rows import gaps, reading, time_rows
from perfsuite.report.run_file import RunFile
from perfsuite.units import format_count

#: Rows of a figure, and cases that its summary tells.
_MOST_ROWS, _MOST_TOLD = 20, 3
_PHASES = ("prefill", "decode")


def phases_figure(run: RunFile) -> Iterator[Figure]:
    """Show all phases, in the order of the run."""
    shown = [each for each in run.judgements if each.kind == "phase" and _is_drawn(each)]
    if shown:
        names = [case_name(each) for each in shown]
        yield _figure("phases", "phases", "Time of each phase", shown, names, 0)


def operators_figures(run: RunFile) -> Iterator[Figure]:
    """Show the most expensive operators of prefill and of decode."""
    for phase in _PHASES:
        found = [each for each in run.judgements if phase_of(each) == phase and _is_drawn(each)]
        shown = _most_expensive(found)
        if shown:
            title = f"Most expensive operators of {phase}" if len(found) > len(shown) else f"Operators of {phase}"
            left = len(found) - len(shown)
            yield _figure(f"operators-{phase}", "operators", title, shown, [role_of(each) for each in shown], left)


def kernels_figures(run: RunFile) -> Iterator[Figure]:
    """Show the kernels that the engine launched, and those of the suite, by their times."""
    for kind, title in (("engine_kernel", "Kernels of the engine"), ("kernel", "Kernels")):
        found = [each for each in run.judgements if each.kind == kind and _is_drawn(each)]
        shown = _most_expensive(found)
        if shown:
            names = [case_name(each) for each in shown]
            figure_id = f"kernels-{kind.partition('_')[0]}"
            yield _figure(figure_id, "kernels", title, shown, names, len(found) - len(shown))


def _figure(
    figure_id: str, subject: str, title: str, shown: Sequence[Judgement], names: Sequence[str], n_left: int
) -> Figure:
    longest = sorted(zip(shown, names, strict=True), key=lambda each: -(each[0].measured_ns or 0))[:_MOST_TOLD]
    told = gaps([each for each, _ in longest], [name for _, name in longest])
    left = f" {format_count(n_left, 'shorter one')} not drawn." if n_left else ""
    return Figure(
        figure_id=figure_id,
        subject=subject,
        title=title,
        summary=f"Longest: {told}.{left} {reading(shown)}",
        spec=time_rows(shown, short_names(names), names, is_log=subject == "phases"),
    )


def _most_expensive(found: Sequence[Judgement]) -> list[Judgement]:
    return sorted(found, key=lambda each: -(each.measured_ns or 0))[:_MOST_ROWS]


def _is_drawn(judgement: Judgement) -> bool:
    return bool(judgement.measured_ns and judgement.samples_ns)
