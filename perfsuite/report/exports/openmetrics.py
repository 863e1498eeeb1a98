"""Runs as OpenMetrics text, which Prometheus scrapes and the textfile collector of its node exporter reads.

*Source*: OpenMetrics 1.0, sections 3 and 4; Prometheus, "Metric and label naming" (base units, ``_info``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.records.judgement import Judgement
from perfsuite.records.moments import moment_of
from perfsuite.report.engine_words import engine_words
from perfsuite.report.run_file import RunFile
from perfsuite.report.token_rates import tokens_per_s
from perfsuite.units import NS_PER_S

Labels = Mapping[str, str]
Samples = Iterator[tuple[Labels, float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """One metric: its name ends with its unit, where it has one."""

    name: str
    unit: str
    told: str
    samples: Callable[[RunFile], Samples]


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


def _of_cases(value: Callable[[Judgement], float | None]) -> Callable[[RunFile], Samples]:
    def samples(run: RunFile) -> Samples:
        return ((_case_labels(run, judgement), value(judgement)) for judgement in run.judgements)

    return samples


def _outcome_samples(run: RunFile) -> Samples:
    for judgement in run.judgements:
        yield {**_case_labels(run, judgement), "outcome": judgement.outcome.value}, 1


def _origin_samples(run: RunFile) -> Samples:
    commit = run.origin.commit
    told = {
        "run_id": run.origin.run_id,
        "engine": engine_words(run.subjects),
        "commit": "" if commit is None else commit.sha,
        "suite_version": run.suite_version,
    }
    yield {**_run_labels(run), **told}, 1


def _energy_samples(run: RunFile) -> Samples:
    for phase, joules in run.joules_per_token.items():
        yield {**_run_labels(run), "phase": phase}, joules


def _start_samples(run: RunFile) -> Samples:
    """Give nothing where the run does not say when it began in a way that can be read."""
    if (moment := moment_of(run.started_at)) is not None:
        yield _run_labels(run), moment.timestamp()


def _duration_samples(run: RunFile) -> Samples:
    yield _run_labels(run), sum(run.durations_s.values())


def _seconds(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / NS_PER_S


_FAMILIES = (
    _Family(
        name="perfsuite_case_measured_seconds",
        unit="seconds",
        told="What the case took: the median over fresh processes.",
        samples=_of_cases(lambda judgement: _seconds(judgement.measured_ns)),
    ),
    _Family(
        name="perfsuite_case_tokens_per_second",
        unit="",
        told="The same of a prefill or a decode as a speed.",
        samples=_of_cases(tokens_per_s),
    ),
    _Family(
        name="perfsuite_case_expected_seconds",
        unit="seconds",
        told="What the forecast says that it takes.",
        samples=_of_cases(lambda judgement: _seconds(judgement.expected_ns)),
    ),
    _Family(
        name="perfsuite_case_floor_seconds",
        unit="seconds",
        told="The least that physics allows.",
        samples=_of_cases(lambda judgement: _seconds(judgement.floor_ns)),
    ),
    _Family(
        name="perfsuite_case_limit_seconds",
        unit="seconds",
        told="The most that passes.",
        samples=_of_cases(lambda judgement: _seconds(judgement.limit_ns)),
    ),
    _Family(
        name="perfsuite_case_baseline_seconds",
        unit="seconds",
        told="What it took before: the median of the baseline, or of the old side.",
        samples=_of_cases(lambda judgement: _seconds(judgement.baseline_ns)),
    ),
    _Family(
        name="perfsuite_case_change_ratio",
        unit="ratio",
        told="New over old time as it is judged, which is no quotient of medians; 1 is equal.",
        samples=_of_cases(lambda judgement: judgement.change_ratio),
    ),
    _Family(
        name="perfsuite_case_change_lower_ratio",
        unit="ratio",
        told="The lower bound of the change.",
        samples=_of_cases(lambda judgement: judgement.lower_ratio),
    ),
    _Family(
        name="perfsuite_case_change_upper_ratio",
        unit="ratio",
        told="The upper bound of the change.",
        samples=_of_cases(lambda judgement: judgement.upper_ratio),
    ),
    _Family(
        name="perfsuite_case_resolution_ratio",
        unit="ratio",
        told="The slowdown that a pass rules out: 0.05 is 5 %.",
        samples=_of_cases(lambda judgement: judgement.resolution_ratio),
    ),
    _Family(
        name="perfsuite_case_outcome",
        unit="",
        told="1 under the outcome that the case has.",
        samples=_outcome_samples,
    ),
    _Family(
        name="perfsuite_phase_token_joules",
        unit="joules",
        told="The energy of a token, where the device has a power sensor.",
        samples=_energy_samples,
    ),
    _Family(
        name="perfsuite_run_info",
        unit="",
        told="1 under the id of the run, the engine, and the commit from which it was run.",
        samples=_origin_samples,
    ),
    _Family(
        name="perfsuite_run_started_timestamp_seconds",
        unit="seconds",
        told="When the run began, since 1970-01-01 UTC.",
        samples=_start_samples,
    ),
    _Family(
        name="perfsuite_run_duration_seconds",
        unit="seconds",
        told="How long the run took.",
        samples=_duration_samples,
    ),
)


def _refuse_doubles(runs: Sequence[RunFile]) -> None:
    """Refuse what would be one series twice, which no reader takes."""
    seen: set[tuple[str, str | None, str]] = set()
    for run in runs:
        place = (run.device, run.origin.kept_by, run.workload)
        if place in seen:
            raise PerfsuiteError(
                f"two runs are of workload {run.workload!r} on device {run.device!r}, which is one series; name one"
            )
        seen.add(place)
        cases = [judgement.case_id for judgement in run.judgements]
        if len(set(cases)) != len(cases):
            double = next(case for place, case in enumerate(cases) if case in cases[:place])
            raise PerfsuiteError(f"the run of {run.workload!r} has the case {double!r} twice; run again")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else f"{value:+}".replace("i", "I")
