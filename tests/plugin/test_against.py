"""Runs that compare two sides in pairs, with stored records in place of measurements."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from perfsuite.errors import LinkError
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from tests.fake_device import FakeDevice, HostRuns, stretched

MODEL = "smollm2-135m-l2-q8_0"


def _cases(runs: HostRuns) -> dict[str, dict[str, Any]]:
    run = runs.plain()
    return {case["id"].split("/", 3)[-1]: case for case in run["cases"]}


@pytest.fixture(scope="module")
def engine() -> Engine:
    """Return the llama.cpp that is installed."""
    return find_engine()


def slowed(payload: dict[str, Any], factor: float) -> dict[str, Any]:
    """What a worker would have sent had everything taken longer."""
    return {**payload, "engine": stretched(EngineRecord.from_plain(payload["engine"]), {"": factor}).to_plain()}


def _plans(device: FakeDevice) -> tuple[TurnsPlan, TurnsPlan]:
    first, second = [plan for plan in device.plans if isinstance(plan, TurnsPlan)][:2]
    return first, second


def test_the_same_on_both_sides_is_never_regressed(runs: HostRuns) -> None:
    """All phases and operators are judged by one set of pairs, which ends at the first look, and nothing fails."""
    assert runs("--against-args=threads=1").ret == 0
    cases = _cases(runs).values()
    assert {(case["outcome"], case["n_pairs"]) for case in cases} == {("pass", 8)}
    assert {case["kind"] for case in cases} == {"phase", "operator"}
    assert len(runs.device.plans) == 16
    assert all(len(case["baseline_samples_ns"]) == len(case["samples_ns"]) == 8 for case in cases)


def test_a_slower_operator_is_confirmed_and_named(runs: HostRuns) -> None:
    """What the screen flags is confirmed on fresh pairs, and the summary names what carries the slowdown."""
    runs.device.slowdown = {"ffn_swiglu": 3.0}
    result = runs("--against-args=threads=1")
    assert result.ret == 1
    case = _cases(runs)["decode/ffn_swiglu"]
    assert case["outcome"] == "regressed"
    assert case["change_ratio"] == pytest.approx(3.0, rel=0.01)
    assert case["lower_ratio"] < case["change_ratio"] < case["upper_ratio"]
    assert case["n_pairs"] > 8
    result.stdout.fnmatch_lines(["*ffn_swiglu*"])


def test_an_operator_of_one_side_is_incomparable(runs: HostRuns) -> None:
    """What the old side does not have is reported as such, beside all that both have, and fails nothing."""
    runs.device.renamed_op = "FLASH_ATTN_EXT"
    result = runs("--against-args=flash_attn=0")
    assert result.ret == 0
    cases = _cases(runs)
    assert cases["decode/flash_attn_ext"]["outcome"] == "incomparable"
    assert cases["decode/ffn_up"]["outcome"] == "pass"
    result.stdout.fnmatch_lines(["*incomparable (2 cases): the two sides do not both measure it"])


def test_a_faster_side_is_improved(runs: HostRuns) -> None:
    """The direction is new over old: what got faster passes, and is stated to be faster."""
    runs.device.slowdown = {"": 0.8}
    assert runs("--against-args=threads=1").ret == 0
    assert _cases(runs)["decode/ffn_up"]["outcome"] == "improved"


def test_a_margin_of_a_marker_decides_pairs(runs: HostRuns) -> None:
    """A test's own margin is the one by which its case is judged."""
    runs.device.slowdown = {"": 1.04}
    runs.pytester.makepyfile(
        """
        import pytest
        @pytest.mark.perf(margin=0.5)
        def test_lenient(phase_case, perf):
            perf.judge(phase_case)
        """
    )
    assert runs("--against-args=threads=1", "-k", "decode", str(runs.pytester.path)).ret == 0


def test_competition_makes_pairs_invalid(runs: HostRuns) -> None:
    """Pairs that had competition decide nothing, and the reason says so."""
    runs.device.contended = True
    assert runs("--against-args=threads=1").ret == NOTHING_JUDGED_EXIT
    cases = _cases(runs)
    assert {case["outcome"] for case in cases.values()} == {"invalid"}
    assert "threads waited 50 %" in cases["decode"]["reason"]


def test_pairs_wait_for_quiet_where_they_are_asked_to(runs: HostRuns) -> None:
    """Two pairs show that the machine is busy; who competes is named, and what is quiet then is judged."""
    runs.device.contended, runs.device.n_busy_looks = True, 2
    result = runs("--against-args=threads=1", "--perf-wait-quiet=60s")
    assert result.ret == 0
    assert {(case["outcome"], case["n_pairs"]) for case in _cases(runs).values()} == {("pass", 8)}
    assert len(runs.device.plans) == 2 * (2 + 8)
    result.stdout.fnmatch_lines(["*llama: the machine was busy from the beginning: *cc1plus*"])


def test_a_session_of_two_speeds_is_told(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both sides slow down from half way on, the ratios stand, and the closing lines and run.json say which."""
    turns = runs.device.run_in_turns

    def throttled(plans: tuple[TurnsPlan, TurnsPlan], **options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        factor = 1.25 if len(runs.device.plans) >= 2 * 4 else 1.0
        old, new = turns(plans, **options)
        return slowed(old, factor), slowed(new, factor)

    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", throttled)
    result = runs("--against-args=threads=1")
    assert {case["outcome"] for case in _cases(runs).values()} == {"pass"}
    told = "llama: the old side took up to 24 % longer in pairs 5 to 8 of 8 than in the first 2 (limit 10 %)"
    result.stdout.fnmatch_lines([f"*{told}*"])
    notes = runs.plain()["device_notes"]
    assert [each.startswith(told) for each in notes] == [True]


@pytest.mark.parametrize(("problems", "outcome"), [((), "pass"), (("too hot to begin",), "invalid")])
@pytest.mark.parametrize("kind", [LinkError, KeyboardInterrupt])
def test_what_was_decided_before_the_link_was_lost_stands(
    runs: HostRuns,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
    problems: tuple[str, ...],
    outcome: str,
) -> None:
    """The last question to the board comes after the last pair; without its answer, what was known of it counts."""
    asked = []

    def held(board: LocalBoard) -> Held:
        if len(runs.device.plans) == 16 and not asked:
            asked.append(board)
            raise kind("no answer for 60 s")
        return Held(problems=problems)

    monkeypatch.setattr("perfsuite.measure.board.local_board.LocalBoard.held", held)
    with suppress(KeyboardInterrupt):
        assert runs("--against-args=threads=1").ret != 0
    assert len(asked) == 1
    assert {(case["outcome"], case["n_pairs"]) for case in _cases(runs).values()} == {(outcome, 8)}


def test_settings_are_those_of_the_old_side(runs: HostRuns) -> None:
    """The old side has the arguments, the new side is what the run would measure anyway."""
    runs("--against-args=threads=1 flash_attn=0 type_k=Q8_0 type_v=f32 ubatch=32", "--threads=2")
    old, new = (plan.llama for plan in _plans(runs.device))
    assert (old.n_threads, old.flash_attn, old.type_k, old.type_v, old.n_ubatch) == (1, False, "q8_0", "f32", 32)
    assert (new.n_threads, new.flash_attn, new.type_k, new.type_v, new.n_ubatch) == (2, True, "f16", "f16", 512)


def test_builds_and_models_are_those_of_the_old_side(runs: HostRuns, engine: Engine) -> None:
    """Another build and another file are what the old side runs."""
    runs(f"--against={engine.library_dir}", "--against-model=smollm2-135m-l3-q8_0")
    run = runs.plain()
    assert run["against"] == f"build {engine.library_dir}, model smollm2-135m-l3-q8_0"
    assert f"against {run['against']}" in run["subject"]["llama"]


def test_an_injected_phase_is_one_of_the_new_side(runs: HostRuns) -> None:
    """``--perf-inject=decode=0.5`` slows the phase of the new side alone."""
    runs("--against-args=threads=2", "--perf-inject=decode=0.5")
    old, new = (plan.llama for plan in _plans(runs.device))
    assert (old.inject_phases, new.inject_phases, new.inject_phase_ratio) == ((), ("decode",), 0.5)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--against-args=threads", "*--against-args=threads: accepted are threads=N*"),
        ("--against-args=threads=0", "*--against-args=threads=0: accepted are*"),
        ("--against-args=flash_attn=maybe", "*flash_attn=maybe: accepted are*"),
        ("--against-args=type_k=q99", "*type_k=q99: accepted are*"),
        ("--against-args=colour=red", "*colour=red: accepted are*"),
        ("--against=/no/such/place", "*--against: /no/such/place*"),
        ("--against-model=smollm2", "*--against-model: *"),
        ("--perf-budget=soon", "*--perf-budget=soon: expected a time such as 120s, 5m or 1h*"),
    ],
)
def test_a_mistake_is_one_line(argument: str, message: str, runs: HostRuns) -> None:
    """Whatever names the old side wrongly is reported with what is accepted, and nothing is measured."""
    result = runs(argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert not runs.device.plans


def test_pairs_are_not_recorded(runs: HostRuns) -> None:
    """A paired comparison is no baseline."""
    result = runs("--against-args=threads=1", "--baseline=record")
    result.stderr.fnmatch_lines(["*--baseline=record: pairs compare two sides*"])
