"""The intervals of change."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.records.outcome import Outcome
from perfsuite.report.page.charts.changes import attribution_figures, changes_figure
from perfsuite.testing.run_files import synthetic_run


def test_the_parts_add_up_to_the_whole() -> None:
    """Bars of carriers and what is left are together that of the phase; a shift of all, and no loss, have none."""
    found = list(attribution_figures(synthetic_run()))
    assert found
    for figure in found:
        whole, *rest = (row["lost"] for row in figure.spec["data"]["values"])
        assert abs(whole - sum(rest)) <= 1e-3 * abs(whole)
    run = synthetic_run()
    shift = UniformShift(ratio=1.2, n_cases=50)
    assert not list(attribution_figures(replace(run, attribution=replace(run.attribution, uniform_shift=shift))))
    assert not list(attribution_figures(replace(synthetic_run(n_cases=7), attribution=Attribution())))


def test_what_regressed_comes_first_and_is_named() -> None:
    """Each row has its outcome, the rest is counted; a large change lies at the axis' end, names differ."""
    run = synthetic_run()
    (figure,) = changes_figure(run)
    rows = figure.spec["data"]["values"]
    regressed = [each for each in run.judgements if each.outcome is Outcome.REGRESSED]
    assert [row["outcome"] for row in rows[: len(regressed)]] == ["regressed"] * len(regressed)
    assert len(rows) == 40
    compared = [each for each in run.judgements if each.change_ratio and each.baseline_ns]
    assert f"{len(compared)} cases compared" in figure.summary
    assert f"{len(compared) - 40} cases with smaller changes not drawn" in figure.summary
    assert "decode/ffn_swiglu × 2" in figure.summary
    first = figure.spec["data"]["values"][0]
    domain = figure.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert domain[1] < 60.0
    assert first["change"] == first["high"] == domain[1]
    assert first["told"].startswith("× 2")
    wide, short = figure.spec["usermeta"]["wideNames"], figure.spec["encoding"]["y"]["scale"]["domain"]
    assert len(set(wide)) == len(wide) == len(short)
    assert not any("…" in name or "(" in name for name in wide)
    assert any("…" in name for name in short)


def test_the_margin_of_each_case_is_shown() -> None:
    """It is what the verdict held it against; both ends are drawn, and none where there was none."""
    run = synthetic_run(n_cases=7)
    (figure,) = changes_figure(run)
    row = figure.spec["data"]["values"][0]
    assert (row["margin"], row["gain"]) == (2.0, -1.9608)
    silent = replace(run, judgements=tuple(replace(each, margin_ratio=None) for each in run.judgements))
    (figure,) = changes_figure(silent)
    assert not any("margin" in row for row in figure.spec["data"]["values"])
    assert "margin" not in figure.summary


def test_intervals_have_bars_where_they_have_bounds() -> None:
    """Too few pairs have none, a stored baseline has them, and without any change there is no figure."""
    run = synthetic_run(n_cases=7)
    bare = tuple(replace(each, lower_ratio=None, upper_ratio=None) for each in run.judgements)
    (figure,) = changes_figure(replace(run, judgements=bare))
    assert all(row["low"] == row["change"] == row["high"] for row in figure.spec["data"]["values"])
    assert "Bars" not in figure.summary
    (figure,) = changes_figure(synthetic_run(n_cases=7, against=None))
    assert all(row["low"] < row["change"] < row["high"] for row in figure.spec["data"]["values"])
    assert "Bars are the bounds" in figure.summary
    bare = tuple(replace(each, change_ratio=None) for each in run.judgements)
    assert list(changes_figure(replace(run, judgements=bare))) == []
