"""The properties that JUnit reports have of a case and of a run, whoever writes the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from perfsuite.records.outcome import Judgement
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.engine_words import engine_words
from perfsuite.report.run_file import plain_case

#: By name; what is not known is left out.
Properties: TypeAlias = Mapping[str, "str | int | float"]

_FIGURES = (
    *("outcome", "measured_ns", "tokens_per_s", "expected_ns", "floor_ns", "limit_ns", "baseline_ns"),
    *("change_ratio", "lower_ratio", "upper_ratio", "resolution_ratio", "reason"),
)


def case_properties(judgement: Judgement) -> Properties:
    """Return the properties of a case."""
    plain = plain_case(judgement)
    figures = {"case": plain["id"], **{name: plain[name] for name in _FIGURES}}
    return {f"perf_{name}": value for name, value in figures.items() if value is not None}


def run_properties(device: str, workload: str, subjects: Mapping[str, str], origin: RunOrigin) -> Properties:
    """Return the properties of all cases of a run; its subjects are what was measured, by group."""
    properties = {"perf_device": device, "perf_workload": workload}
    if subjects:
        properties["perf_engine"] = engine_words(subjects)
    if origin.run_id:
        properties["perf_run_id"] = origin.run_id
    if origin.commit is not None:
        properties["perf_commit"] = f"{origin.commit.sha}{'-dirty' if origin.commit.is_dirty else ''}"
    if origin.board is not None:
        properties["perf_board"] = f"{origin.board.identity} {origin.board.hostname}"
    return properties
