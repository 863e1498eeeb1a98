"""Runs as OpenMetrics text, which Prometheus scrapes and the textfile collector of its node exporter reads.

*Source*: OpenMetrics 1.0, sections 3 and 4; Prometheus, "Metric and label naming" (base units, ``_info``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.report.exports import Export
from perfsuite.report.run_writer import plain_case, run_facts
from perfsuite.report.visible import without_controls
from perfsuite.units import NS_PER_S

Labels = Mapping[str, str]
Samples = Iterator[tuple[Labels, float | None]]


class _Family(NamedTuple):
    """One metric; its name ends with its unit, where it has one of these."""

    name: str
    told: str
    samples: Callable[[RunFile], Samples]

    @property
    def unit(self) -> str:
        last = self.name.rpartition("_")[2]
        return last if last in ("seconds", "ratio", "joules") else ""


def openmetrics_text(runs: Sequence[RunFile]) -> str:
    """Return the figures of all cases, the outcomes, and when each run was; samples carry no time of their own.

    Raises PerfsuiteError where two runs, or two cases of one, would be the same series.
    """
    _refuse_doubles(runs)
    lines = [line for family in _FAMILIES for line in _lines(family, runs)]
    return "".join(f"{line}\n" for line in (*lines, "# EOF"))


def _lines(family: _Family, runs: Sequence[RunFile]) -> Iterator[str]:
    yield f"# TYPE {family.name} gauge"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.told}"
    for run in runs:
        for labels, value in family.samples(run):
            if value is not None:
                told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
                yield f"{family.name}{{{told}}} {_number(value)}"


def _run_labels(run: RunFile) -> dict[str, str]:
    board = {"board": run.origin.kept_by} if run.origin.kept_by else {}
    return {"device": run.device, **board, "workload": run.workload}


def _case_labels(run: RunFile, judgement: Judgement) -> dict[str, str]:
    return {"case": judgement.case_id, "kind": judgement.kind, **_run_labels(run)}


def _of_cases(figure: str) -> Callable[[RunFile], Samples]:
    """Take a figure of each case by its name in run.json; times in seconds."""
    factor = NS_PER_S if figure.endswith("_ns") else 1

    def samples(run: RunFile) -> Samples:
        for judgement in run.judgements:
            value = plain_case(judgement)[figure]
            yield _case_labels(run, judgement), None if value is None else value / factor

    return samples


def _outcome_samples(run: RunFile) -> Samples:
    for judgement in run.judgements:
        yield {**_case_labels(run, judgement), "outcome": judgement.outcome.value}, 1


def _origin_samples(run: RunFile) -> Samples:
    facts = run_facts(run)
    yield (
        {**_run_labels(run), **{name: facts[name] or "" for name in ("run_id", "engine", "commit", "suite_version")}},
        1,
    )


def _energy_samples(run: RunFile) -> Samples:
    for phase, joules in run.joules_per_token.items():
        yield {**_run_labels(run), "phase": phase}, joules


def _start_samples(run: RunFile) -> Samples:
    """Give nothing where the run does not say when it began in a way that can be read."""
    if (moment := moment_of(run.started_at)) is not None:
        yield _run_labels(run), moment.timestamp()


def _duration_samples(run: RunFile) -> Samples:
    yield _run_labels(run), sum(run.durations_s.values())


_OF_CASES = (
    ("measured_seconds", "measured_ns", "What the case took: the median over fresh processes."),
    ("tokens_per_second", "tokens_per_s", "The same of a prefill or a decode as a speed."),
    ("expected_seconds", "expected_ns", "What the forecast says that it takes."),
    ("floor_seconds", "floor_ns", "The least that physics allows."),
    ("limit_seconds", "limit_ns", "The most that passes."),
    ("baseline_seconds", "baseline_ns", "What it took before: the median of the baseline, or of the old side."),
    ("change_ratio", "change_ratio", "New over old time as it is judged, which is no quotient of medians; 1 is equal."),
    ("change_lower_ratio", "lower_ratio", "The lower bound of the change."),
    ("change_upper_ratio", "upper_ratio", "The upper bound of the change."),
    ("resolution_ratio", "resolution_ratio", "The slowdown that a pass rules out: 0.05 is 5 %."),
)

_FAMILIES = (
    *(_Family(f"perfsuite_case_{name}", told, _of_cases(figure)) for name, figure, told in _OF_CASES),
    _Family("perfsuite_case_outcome", "1 under the outcome that the case has.", _outcome_samples),
    _Family(
        "perfsuite_phase_token_joules", "The energy of a token, where the device has a power sensor.", _energy_samples
    ),
    _Family(
        "perfsuite_run_info",
        "1 under the id of the run, the engine, and the commit from which it was run.",
        _origin_samples,
    ),
    _Family("perfsuite_run_started_timestamp_seconds", "When the run began, since 1970-01-01 UTC.", _start_samples),
    _Family("perfsuite_run_duration_seconds", "How long the run took.", _duration_samples),
)


def _refuse_doubles(runs: Sequence[RunFile]) -> None:
    """Refuse what would be one series twice, which no reader takes."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    for run in runs:
        place = tuple((name, _escaped(text)) for name, text in _run_labels(run).items())
        if place in seen:
            raise PerfsuiteError(
                f"two runs are of workload {run.workload!r} on device {run.device!r}, which is one series; name one"
            )
        seen.add(place)
        cases = [_escaped(judgement.case_id) for judgement in run.judgements]
        if len(set(cases)) != len(cases):
            double = Counter(cases).most_common(1)[0][0]
            raise PerfsuiteError(f"the run of {run.workload!r} has the case {double!r} twice; run again")


def _escaped(text: str) -> str:
    written = without_controls(text, kept="\n")
    return written.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{value:+}".replace("i", "I")


EXPORTS = (Export(name="openmetrics", summary="text that Prometheus reads", text=openmetrics_text, place=6),)
