"""The properties that JUnit reports have of a case and of a run, whoever writes the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from perfsuite.records.judgement import Judgement
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.engine_words import engine_words
from perfsuite.report.token_rates import tokens_per_s

#: By name; what is not known is left out.
Properties: TypeAlias = Mapping[str, "str | int | float"]


def case_properties(judgement: Judgement) -> Properties:
    """Return the properties of a case."""
    figures: dict[str, str | int | float | None] = {
        "perf_case": judgement.case_id,
        "perf_outcome": judgement.outcome.value,
        "perf_measured_ns": judgement.measured_ns,
        "perf_tokens_per_s": tokens_per_s(judgement),
        "perf_expected_ns": judgement.expected_ns,
        "perf_floor_ns": judgement.floor_ns,
        "perf_limit_ns": judgement.limit_ns,
        "perf_baseline_ns": judgement.baseline_ns,
        "perf_change_ratio": judgement.change_ratio,
        "perf_lower_ratio": judgement.lower_ratio,
        "perf_upper_ratio": judgement.upper_ratio,
        "perf_resolution_ratio": judgement.resolution_ratio,
        "perf_reason": judgement.reason,
    }
    return {name: value for name, value in figures.items() if value is not None}


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
