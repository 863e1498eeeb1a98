"""Cases of ``--perf-overhead`` in whole runs of the plugin, with nothing measured."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.overhead.experiment import case_name, judge_overhead
from perfsuite.experiments.overhead.measurement import COST_PHASES, Comparison, Overhead
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.significance import PairedRatio
from tests.fake_device import FakeDevice, HostRuns


def ratio(lower: float, median: float, upper: float) -> PairedRatio:
    return PairedRatio(lower_ratio=lower, median_ratio=median, upper_ratio=upper, n_pairs=12)


@pytest.mark.parametrize(
    ("phase", "bounds", "outcome"),
    [
        (Phase.PREFILL, (0.998, 1.001, 1.005), Outcome.PASS),
        (Phase.PREFILL, (0.998, 1.001, 1.0051), Outcome.INCONCLUSIVE),
        (Phase.PREFILL, (1.004, 1.006, 1.008), Outcome.INCONCLUSIVE),
        (Phase.PREFILL, (1.0051, 1.006, 1.008), Outcome.SLOW),
        (Phase.DECODE, (1.006, 1.007, 1.008), Outcome.PASS),
        (Phase.END_TO_END, (1.006, 1.007, 1.008), Outcome.PASS),
    ],
)
def test_the_bounds_decide_by_the_limit_of_a_phase(
    phase: Phase, bounds: tuple[float, float, float], outcome: Outcome
) -> None:
    judgement = judge_overhead(case_name("layer", phase), ratio(*bounds), reason="")
    assert (judgement.outcome, judgement.change_ratio) == (outcome, bounds[1])
    assert phase is not Phase.PREFILL or "limit +0.50 %" in judgement.reason


#: What each run has besides.
USUAL = ("--threads=2", "--baseline=off")


@pytest.fixture
def compared(fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> list[Comparison]:
    """Replace the comparisons by ones that cost a prefill 0.2 % and a decode 5 %; return which were asked for."""
    given: list[Comparison] = []

    def compare(comparison: Comparison, *_: object, **settings: Any) -> Overhead:
        given.append(comparison)
        settings["announce"](0)
        medians = {Phase.PREFILL: 1.002, Phase.DECODE: 1.05, Phase.END_TO_END: 1.01}
        return Overhead(ratios={phase: ratio(*[each] * 3) for phase, each in medians.items()}, n_discarded=0)

    monkeypatch.setattr("perfsuite.experiments.overhead.experiment.compare_recorders", compare)
    return given


@pytest.mark.usefixtures("compared")
def test_each_recorder_and_combination_is_a_case(runs: HostRuns) -> None:
    result = runs("--perf-overhead", "--collect-only", "-q", "-k", "test_overhead")
    found = [line.partition("[")[2].rstrip("]") for line in result.outlines if "::test_overhead[" in line]
    assert found == [f"overhead/{name}/{phase.value}" for name in ("live", "callback+live") for phase in COST_PHASES]


def test_each_governor_is_compared_under(
    runs: HostRuns, compared: list[Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str | None] = []

    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.settable_governors", lambda _: ("performance", "powersave")
    )
    monkeypatch.setattr(LocalBoard, "set_governor", lambda board, name: chosen.append(name))
    runs("--perf-overhead", "-k", "overhead and callback and decode")
    assert chosen == ["performance", None, "powersave", None]
    judgements = runs.plain()["cases"]
    assert [each["id"] for each in judgements] == [
        "overhead/callback+live@performance/decode",
        "overhead/callback+live@powersave/decode",
    ]
    assert len(compared) == 2


def test_only_what_is_selected_is_compared(runs: HostRuns, compared: list[Comparison]) -> None:
    """A run of one comparison's cases measures that one, and its outcomes follow the limits."""
    result = runs("--perf-overhead", "-k", "overhead and callback")
    assert [each.recorder for each in compared] == ["callback"]
    judgements = runs.plain()["cases"]
    assert {each["id"]: each["outcome"] for each in judgements} == {
        "overhead/callback+live/prefill": "pass",
        "overhead/callback+live/decode": "slow",
        "overhead/callback+live/end_to_end": "pass",
    }
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*+5.00 % (95 % bounds +5.00 % to +5.00 %, 12 pairs), limit +3.00 %*"])


def test_a_disturbed_comparison_is_invalid(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = Mock(side_effect=MeasurementError("2 of 12 pairs had no competition"))
    monkeypatch.setattr("perfsuite.experiments.overhead.experiment.compare_recorders", refuse)
    result = runs("--perf-overhead", "-k", "overhead and live and prefill")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*invalid*2 of 12 pairs had no competition*"])
    assert runs.outcomes() == {"invalid"}
