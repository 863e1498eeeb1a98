"""``perfsuite overhead``, with its workers replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.measure.plan import OverheadPlan

from .conftest import Refused, Streams


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[OverheadPlan]:
    """Replace workers by pairs in which the recorder costs a tenth; return the plans that they were given."""
    given: list[OverheadPlan] = []

    def answer(plan: OverheadPlan) -> dict[str, Any]:
        given.append(plan)
        quiet = {"wall_ns": 1, "running_ns": 3, "waiting_ns": 1, "steal_ratio": None, "others_ratio": None}
        return {"plain_ns": [1000] * plan.n_pairs, "recorded_ns": [1100] * plan.n_pairs, "contention": quiet}

    monkeypatch.setattr("perfsuite.cli.overhead.run_worker", answer)
    monkeypatch.setattr("perfsuite.cli.overhead.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return given


def test_overhead_is_measured_for_each_recorder_and_phase(plans: list[OverheadPlan], capsys: Streams) -> None:
    """There is a row for each, as JSON with the ratio, its bounds and the number of pairs."""
    assert main(["overhead", "--json", "--pairs", "20", "--threads", "3"]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = [(recorder, phase) for recorder in ("callback", "preload", "cb_eval") for phase in ("decode", "prefill")]
    assert [(row["recorder"], row["phase"]) for row in rows] == expected
    assert [(plan.llama.recorder, plan.phase) for plan in plans[::4]] == expected
    assert len(plans) == 4 * len(expected)
    assert all(row["median_ratio"] == row["upper_ratio"] == pytest.approx(1.1) for row in rows)
    assert all((row["pairs"], row["waiting_ratio"]) == (20, 0.25) for row in rows)
    assert {plan.llama.n_threads for plan in plans} == {3}


def test_overhead_is_told_as_a_table(plans: list[OverheadPlan], capsys: Streams) -> None:
    """Without --json there is a row of percentages for each phase of the recorder that was asked for."""
    assert main(["overhead", "--recorder", "callback"]) == 0
    out = capsys.readouterr().out
    assert out.count("+10.00 %") == out.count("callback") == 2
    assert [plan.n_pairs for plan in plans] == [250] * 4 + [100] * 4


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nokia3310"], "--device=nokia3310: no such device; known are "),
        (["--model", "smollm2-135m"], "lacks a quantisation"),
        (["--model", "/nowhere/x.gguf"], "/nowhere/x.gguf"),
    ],
)
def test_what_cannot_be_measured_is_one_line(arguments: list[str], message: str, refused: Refused) -> None:
    """An unknown device, a name without a quantisation and a missing file are told before anything runs."""
    assert message in refused(["overhead", *arguments])


@pytest.mark.usefixtures("plans")
def test_too_few_pairs_are_one_line(refused: Refused) -> None:
    """Fewer pairs than a bound needs are a user's mistake."""
    assert "pairs" in refused(["overhead", "--pairs", "3"])
