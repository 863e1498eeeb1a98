"""Ratios of counts to formulas are found again over sizes, with their error, and hold for one build."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.expectation.counted_ratios import (
    EXPECTED_METRICS,
    counted_roles,
    fitted_ratios,
    known_ratios,
    ratios_in,
    role_works,
    write_ratios,
)
from tests.catalogue_workloads import catalogue_workload
from tests.synthetic_counts import WORKLOADS, made_of_terms, made_ratios


def test_ratios_are_found_again() -> None:
    found = made_ratios().ratios
    kinds = {ratio.kind for ratio in found}
    assert {"MUL_MAT q8_0 of one row", "MUL_MAT q8_0 of rows", "RMS_NORM+MUL f32", "ROPE f32 of llama"} <= kinds
    assert len(found) == len(kinds) * len(EXPECTED_METRICS)
    assert max(ratio.error_ratio for ratio in found) < 1e-3
    assert {ratio.n_runs for ratio in found} == {len(WORKLOADS)}


def test_a_role_that_stands_out_pulls_no_ratio_along() -> None:
    """Neither its weights nor its error; it stays a finding."""
    roles = [role for each in WORKLOADS for role in counted_roles(made_of_terms(each, result_norm=2), each)]
    usual = {(ratio.kind, ratio.metric): ratio for ratio in made_ratios().ratios}
    for ratio in fitted_ratios(roles):
        assert ratio.error_ratio == pytest.approx(usual[ratio.kind, ratio.metric].error_ratio, abs=1e-3)


def test_a_kind_of_two_runs_is_not_fitted() -> None:
    """A fit to one of them would know one size."""
    assert fitted_ratios(role for each in WORKLOADS[:2] for role in counted_roles(made_of_terms(each), each)) == ()


def test_steps_are_told_one_by_one() -> None:
    """A phase of four steps does four times what one does, where the cache is as long."""
    once, four = (
        {(work.phase, work.role): work.cost.flops for work in role_works(catalogue_workload(scenario=scenario))}
        for scenario in ("p16-g1", "p16-g4")
    )
    assert {phase: 4 * flops for phase, flops in once.items() if phase[0] == "decode"} == {
        phase: flops for phase, flops in four.items() if phase[0] == "decode"
    }


def test_the_committed_ratios_hold_for_the_pinned_build(tmp_path: Path) -> None:
    """They are read, written as they were, and know the products of the standard run."""
    ratios = known_ratios()
    write_ratios(tmp_path / "ratios.json", ratios)
    assert ratios_in(tmp_path / "ratios.json") == ratios
    assert {"MUL_MAT q8_0 of one row", "MUL_MAT q8_0 of rows"} <= {ratio.kind for ratio in ratios.ratios}
