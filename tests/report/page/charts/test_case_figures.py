"""The small figures of single cases."""

from __future__ import annotations

import json
from dataclasses import replace

from perfsuite.report.page.charts import case_figures
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from ..conftest import page_run


def test_every_case_with_samples_has_a_figure_of_its_own() -> None:
    """Its key is no part of its name; a case without samples has none."""
    run = synthetic_run(n_cases=120, names=HOSTILE_NAMES)
    made = case_figures(run)
    assert [key is not None for key in made.keys] == [bool(each.samples_ns) for each in run.judgements]
    assert set(made.plain["cases"]) == {key for key in made.keys if key}
    assert all(key.removeprefix("case-").isdigit() for key in made.plain["cases"])


def test_a_case_names_a_template_of_its_unit_and_bounds() -> None:
    """One specification serves all cases that are alike in both, so that the figures of 500 stay small."""
    made = case_figures(synthetic_run(n_cases=300)).plain
    assert {each["template"] for each in made["cases"].values()} == set(made["templates"])
    assert len(made["templates"]) <= 24
    for each in made["cases"].values():
        unit = made["templates"][each["template"]]["usermeta"]["unit"]
        assert each["template"].split() == [unit, *each.get("bounds", ())]
    assert len(json.dumps(case_figures(synthetic_run()).plain, separators=(",", ":"))) < 150_000


def test_both_sides_and_the_other_runs_are_shown() -> None:
    """Times are in the unit of the case, other runs' by the run's place; a stored baseline is one point."""
    run, other = synthetic_run(n_cases=7), synthetic_run(n_cases=7, seed=1, started_at="2026-02-01T02:00:00+00:00")
    made = case_figures(run, [page_run(other)])
    first, judgement = made.plain["cases"][made.keys[0]], run.judgements[0]
    assert first["template"].startswith("ms")
    assert len(first["times"]["this run"]) == len(judgement.samples_ns)
    assert len(first["times"]["old side"]) == len(judgement.baseline_samples_ns)
    assert first["medians"]["this run"] == float(f"{(judgement.measured_ns or 0) / 1e6:.5g}")
    assert first["others"] == [[0, float(f"{(other.judgements[0].measured_ns or 0) / 1e6:.5g}")]]
    assert made.plain["runs"] == ["02-01 02:00"]
    run = synthetic_run(n_cases=1, against=None)
    assert len(case_figures(run).plain["cases"]["case-0"]["times"]["baseline"]) == 1


def test_a_bound_far_away_is_told_and_medians_are_of_all_samples() -> None:
    """What is not there takes no room, and of hundreds of samples only some are drawn."""
    run = synthetic_run(n_cases=1)
    near = replace(run.judgements[0], floor_ns=1, expected_ns=run.judgements[0].measured_ns, limit_ns=None)
    made = case_figures(replace(run, judgements=(near,))).plain["cases"]["case-0"]
    assert list(made["bounds"]) == ["expected"]
    assert made["beyond"] == "beyond the axis: floor 1.00 ns"
    run = synthetic_run(n_cases=1, against=None)
    bare = replace(run.judgements[0], floor_ns=None, expected_ns=None, limit_ns=None)
    made = case_figures(replace(run, judgements=(bare,))).plain["cases"]["case-0"]
    assert made.keys() == {"template", "times", "medians"}
    run = synthetic_run(n_cases=1)
    many = (1_000_000,) * 60 + (3_000_000,) * 80
    judgement = replace(run.judgements[0], samples_ns=many, measured_ns=3_000_000, baseline_samples_ns=many)
    made = case_figures(replace(run, judgements=(judgement,))).plain["cases"]["case-0"]
    assert set(made["medians"].values()) == {3.0}
