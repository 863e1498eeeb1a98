"""Phases, operators and kernels: measured, expected, floor and baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfsuite.report.page.charts.times import kernels_figures, operators_figures, phases_figure
from perfsuite.testing.run_files import synthetic_run


def rows(spec: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The rows of the layer whose rows have the key."""
    return next(layer["data"]["values"] for layer in spec["layer"] if key in layer["data"]["values"][0])


def test_every_phase_is_shown_on_a_logarithmic_axis() -> None:
    """With all its times, samples and interval in one unit, the time before by its name; nothing is drawn at zero."""
    run = synthetic_run(n_cases=7)
    (figure,) = phases_figure(run)
    marks = rows(figure.spec, "what")
    prefill = {each["what"]: each["time"] for each in marks if each["row"] == "prefill"}
    judged = run.judgements[0]
    assert prefill["measured"] == float(f"{(judged.measured_ns or 0) / 1e6:.5g}")
    assert set(prefill) == {"measured", "expected", "floor", "old side"}
    assert len(rows(figure.spec, "low")) == 7
    assert figure.spec["layer"][-1]["encoding"]["x"]["scale"]["type"] == "log"
    assert figure.spec["layer"][-1]["encoding"]["x"]["axis"]["title"] == "time (ms)"
    (figure,) = phases_figure(synthetic_run(n_cases=7, against=None))
    assert {each["what"] for each in rows(figure.spec, "what")} == {"measured", "expected", "floor", "baseline"}
    unmeasured = replace(run.judgements[0], measured_ns=None, samples_ns=())
    (figure,) = phases_figure(replace(run, judgements=(unmeasured, *run.judgements[1:])))
    assert "prefill" not in {each["row"] for each in rows(figure.spec, "what")}
    assert list(phases_figure(replace(run, judgements=(unmeasured,)))) == []


def test_the_most_expensive_operators_are_at_the_top() -> None:
    """Twenty of each phase, on an axis from zero, the others are counted; kernels of engine and suite are apart."""
    prefill, decode = operators_figures(synthetic_run())
    assert (prefill.figure_id, decode.figure_id) == ("operators-prefill", "operators-decode")
    measured = [each["time"] for each in rows(prefill.spec, "what") if each["what"] == "measured"]
    assert measured == sorted(measured, reverse=True)
    assert len(measured) == 20
    assert "2 shorter ones not drawn" in prefill.summary
    assert prefill.spec["layer"][-1]["encoding"]["x"]["scale"]["domain"][0] == 0
    assert [each.title for each in kernels_figures(synthetic_run())] == ["Kernels of the engine", "Kernels"]
