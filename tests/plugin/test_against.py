"""Runs that compare two sides in pairs, with stored records in place of measurements."""

from __future__ import annotations

import json
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

from .conftest import FakeDevice, stretched

MODEL = "smollm2-135m-l2-q8_0"


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(
        "--device=host", f"--model={MODEL}", "--perf-dir=run", "-p", "no:cacheprovider", *arguments
    )


def _cases(pytester: pytest.Pytester) -> dict[str, dict[str, Any]]:
    run = json.loads((pytester.path / "run" / "run.json").read_text())
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


def test_the_same_on_both_sides_is_never_regressed(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """All phases and operators are judged by one set of pairs, which ends at the first look, and nothing fails."""
    result = _run(pytester, "--against-args=threads=1")
    assert result.ret == 0
    cases = _cases(pytester)
    assert {case["outcome"] for case in cases.values()} == {"pass"}
    assert {case["kind"] for case in cases.values()} == {"phase", "operator"}
    assert {case["n_pairs"] for case in cases.values()} == {8}
    assert len(fake_device.plans) == 16
    assert all(len(case["baseline_samples_ns"]) == len(case["samples_ns"]) == 8 for case in cases.values())


def test_a_slower_operator_is_confirmed_and_named(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """What the screen flags is confirmed on fresh pairs, and the summary names what carries the slowdown."""
    fake_device.slowdown = {"ffn_swiglu": 3.0}
    result = _run(pytester, "--against-args=threads=1")
    assert result.ret == 1
    case = _cases(pytester)["decode/ffn_swiglu"]
    assert case["outcome"] == "regressed"
    assert case["change_ratio"] == pytest.approx(3.0, rel=0.01)
    assert case["lower_ratio"] < case["change_ratio"] < case["upper_ratio"]
    assert case["n_pairs"] > 8
    result.stdout.fnmatch_lines(["*ffn_swiglu*"])


def test_an_operator_of_one_side_is_incomparable(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """What the old side does not have is told as such, beside all that both have, and fails nothing."""
    fake_device.renamed_op = "FLASH_ATTN_EXT"
    result = _run(pytester, "--against-args=flash_attn=0")
    assert result.ret == 0
    cases = _cases(pytester)
    assert cases["decode/flash_attn_ext"]["outcome"] == "incomparable"
    assert cases["decode/ffn_up"]["outcome"] == "pass"
    result.stdout.fnmatch_lines(["*incomparable (2 cases): the two sides do not both measure it"])


def test_a_faster_side_is_improved(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The direction is new over old: what got faster passes, and is said to be faster."""
    fake_device.slowdown = {"": 0.8}
    assert _run(pytester, "--against-args=threads=1").ret == 0
    assert _cases(pytester)["decode/ffn_up"]["outcome"] == "improved"


def test_a_margin_of_a_marker_decides_pairs(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A test's own margin is the one by which its case is judged."""
    fake_device.slowdown = {"": 1.04}
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.perf(margin=0.5)
        def test_lenient(phase_case, perf):
            perf.judge(phase_case)
        """
    )
    assert _run(pytester, "--against-args=threads=1", "-k", "decode", str(pytester.path)).ret == 0


def test_competition_makes_pairs_invalid(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Pairs that had competition decide nothing, and the reason says so."""
    fake_device.contended = True
    assert _run(pytester, "--against-args=threads=1").ret == NOTHING_JUDGED_EXIT
    cases = _cases(pytester)
    assert {case["outcome"] for case in cases.values()} == {"invalid"}
    assert "threads waited 50 %" in cases["decode"]["reason"]


def test_pairs_wait_for_quiet_where_they_are_asked_to(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Two pairs show that the machine is busy; who competes is named, and what is quiet then is judged."""
    fake_device.contended, fake_device.n_busy_looks = True, 2
    result = _run(pytester, "--against-args=threads=1", "--perf-wait-quiet=60s")
    assert result.ret == 0
    assert {case["outcome"] for case in _cases(pytester).values()} == {"pass"}
    assert {case["n_pairs"] for case in _cases(pytester).values()} == {8}
    assert len(fake_device.plans) == 2 * (2 + 8)
    result.stdout.fnmatch_lines(["*llama: the machine was busy from the beginning: *cc1plus*"])


def test_a_session_of_two_speeds_is_told(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both sides slow down from half way on, the ratios stand, and the closing lines and run.json say which."""
    turns = fake_device.run_in_turns

    def throttled(plans: tuple[TurnsPlan, TurnsPlan], **options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        factor = 1.25 if len(fake_device.plans) >= 2 * 4 else 1.0
        old, new = turns(plans, **options)
        return slowed(old, factor), slowed(new, factor)

    monkeypatch.setattr("perfsuite.measure.turns.run_in_turns", throttled)
    result = _run(pytester, "--against-args=threads=1")
    assert {case["outcome"] for case in _cases(pytester).values()} == {"pass"}
    told = "llama: the old side took up to 24 % longer in pairs 5 to 8 of 8 than in the first 2 (limit 10 %)"
    result.stdout.fnmatch_lines([f"*{told}*"])
    notes = json.loads((pytester.path / "run" / "run.json").read_text())["device_notes"]
    assert [each.startswith(told) for each in notes] == [True]


@pytest.mark.parametrize("kind", [LinkError, KeyboardInterrupt])
def test_what_was_decided_before_the_link_was_lost_stands(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """The last question to the board comes after the last pair; without its answer the pairs say what they said."""
    answer, asked = LocalBoard.held, []

    def held(board: LocalBoard) -> Held:
        if len(fake_device.plans) == 16 and not asked:
            asked.append(board)
            raise kind("no answer for 60 s")
        return answer(board)

    monkeypatch.setattr("perfsuite.measure.board.local_board.LocalBoard.held", held)
    with suppress(KeyboardInterrupt):
        assert _run(pytester, "--against-args=threads=1").ret != 0
    assert len(asked) == 1
    cases = _cases(pytester)
    assert {(case["outcome"], case["n_pairs"]) for case in cases.values()} == {("pass", 8)}


@pytest.mark.parametrize("kind", [LinkError, KeyboardInterrupt])
def test_a_problem_that_is_known_counts_whatever_breaks_the_pairs_off(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """What a device that was too hot to begin has measured is not to be trusted, also where its end was not heard."""
    asked = []

    def held(board: LocalBoard) -> Held:
        if len(fake_device.plans) == 16 and not asked:
            asked.append(board)
            raise kind("no answer for 60 s")
        return Held(notes=(), problems=("too hot to begin",))

    monkeypatch.setattr("perfsuite.measure.board.local_board.LocalBoard.held", held)
    with suppress(KeyboardInterrupt):
        assert _run(pytester, "--against-args=threads=1").ret != 0
    assert {case["outcome"] for case in _cases(pytester).values()} == {"invalid"}


def test_settings_are_those_of_the_old_side(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """The old side has the arguments, the new side is what the run would measure anyway."""
    _run(pytester, "--against-args=threads=1 flash_attn=0 type_k=Q8_0 type_v=f32 ubatch=32", "--threads=2")
    old, new = (plan.llama for plan in _plans(fake_device))
    assert (old.n_threads, old.flash_attn, old.type_k, old.type_v, old.n_ubatch) == (1, False, "q8_0", "f32", 32)
    assert (new.n_threads, new.flash_attn, new.type_k, new.type_v, new.n_ubatch) == (2, True, "f16", "f16", 512)


def test_builds_and_models_are_those_of_the_old_side(
    pytester: pytest.Pytester, fake_device: FakeDevice, engine: Engine
) -> None:
    """Another build and another file are what the old side runs."""
    _run(pytester, f"--against={engine.library_dir}", "--against-model=smollm2-135m-l3-q8_0")
    run = json.loads((pytester.path / "run" / "run.json").read_text())
    assert run["against"] == f"build {engine.library_dir}, model smollm2-135m-l3-q8_0"
    assert f"against {run['against']}" in run["subject"]["llama"]


def test_an_injected_phase_is_one_of_the_new_side(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """``--perf-inject=decode=0.5`` slows the phase of the new side alone."""
    _run(pytester, "--against-args=threads=2", "--perf-inject=decode=0.5")
    old, new = (plan.llama for plan in _plans(fake_device))
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
def test_a_mistake_is_one_line(argument: str, message: str, pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Whatever names the old side wrongly is told with what is accepted, and nothing is measured."""
    result = _run(pytester, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    assert not fake_device.plans


def test_pairs_are_not_recorded(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A paired comparison is no baseline."""
    result = _run(pytester, "--against-args=threads=1", "--baseline=record")
    result.stderr.fnmatch_lines(["*--baseline=record: pairs compare two sides*"])
