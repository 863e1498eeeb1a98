"""Runs that compare two sides in pairs, with stored records in place of measurements."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.plan import TurnsPlan
from perfsuite.records.events import EngineRecord
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, SUSPECT_EXIT
from perfsuite.testing.workers import replace_turns
from perfsuite.verdict.pairs import LOOKS
from tests.fake_device import BRIEFLY, QUIET, FakeDevice, HostRuns, stretched

#: What quiet pairs are decided by.
N_PAIRS = LOOKS[0][0]

MODEL = "smollm2-135m-l2-q8_0"


def _cases(runs: HostRuns) -> dict[str, dict[str, Any]]:
    run = runs.plain()
    return {case["id"].split("/", 3)[-1]: case for case in run["cases"]}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return find_engine()


def slowed(payload: dict[str, Any], factor: float) -> dict[str, Any]:
    """What a worker would have sent had everything taken longer."""
    return {**payload, "engine": stretched(EngineRecord.from_plain(payload["engine"]), {"": factor}).to_plain()}


def _turns(device: FakeDevice) -> list[TurnsPlan]:
    return [plan for plan in device.plans if isinstance(plan, TurnsPlan)]


def _plans(device: FakeDevice) -> tuple[TurnsPlan, TurnsPlan]:
    first, second = _turns(device)[:2]
    return first, second


def test_the_same_on_both_sides_is_never_regressed(runs: HostRuns) -> None:
    """All phases and operators are judged by one set of pairs, which ends at the first look, and nothing fails."""
    assert runs("--against-args=threads=1").ret == 0
    cases = _cases(runs).values()
    assert {(case["outcome"], case["n_pairs"]) for case in cases} == {("pass", N_PAIRS)}
    assert {case["kind"] for case in cases} == {"phase", "operator"}
    assert len(_turns(runs.device)) == 2 * N_PAIRS
    assert all(len(case["baseline_samples_ns"]) == len(case["samples_ns"]) == N_PAIRS for case in cases)


def test_a_slower_operator_is_regressed_and_named(runs: HostRuns) -> None:
    runs.device.slowdown = {"ffn_swiglu": 3.0}
    result = runs("--against-args=threads=1")
    assert result.ret == 1
    case = _cases(runs)["decode/ffn_swiglu"]
    assert case["outcome"] == "regressed"
    assert case["change_ratio"] == pytest.approx(3.0, rel=0.01)
    assert case["lower_ratio"] < case["change_ratio"] < case["upper_ratio"]
    result.stdout.fnmatch_lines(["*ffn_swiglu*"])


def test_an_operator_of_one_side_is_incomparable(runs: HostRuns) -> None:
    """Its time is a change: it is named with it, whether anybody expected it or not, beside all that both have."""
    runs.device.renamed_op = "FLASH_ATTN_EXT"
    result = runs("--against-args=flash_attn=0")
    assert result.ret == 0
    cases = _cases(runs)
    new, gone = cases["decode/flash_attn_ext"], cases["decode/Qcur_another"]
    assert (new["outcome"], gone["outcome"], cases["decode/ffn_up"]["outcome"]) == (*["incomparable"] * 2, "pass")
    assert new["reason"].startswith("only the new side computes it: ")
    assert gone["reason"].startswith("only the old side computes it: ")
    assert (new["baseline_samples_ns"], gone["samples_ns"]) == ([], [])
    assert len(new["samples_ns"]) == len(gone["baseline_samples_ns"]) == new["n_pairs"] > 0
    result.stdout.fnmatch_lines(["  on one side alone: *new: prefill/flash_attn_ext +*gone: decode/Qcur_another -*"])
    result.stdout.no_fnmatch_line("*incomparable (*")
    result.stdout.no_fnmatch_line("*give both sides*")


@pytest.mark.parametrize(
    ("side", "arguments", "reason"),
    [
        (1, ["--against={library_dir}"], " is below the floor of "),
        (0, ["--against={library_dir}"], "the old side: "),
        (0, ["--against-args=type_k=f32"], None),
    ],
)
def test_a_side_that_is_faster_than_physics_allows_is_impossible(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, engine: Engine, side: int, arguments: list[str], reason: str | None
) -> None:
    """The floor judges both sides, and the reason names the old one; other settings are other work on the old side."""
    turns = runs.device.run_in_turns

    def sped(plans: tuple[TurnsPlan, TurnsPlan], **options: object) -> list[dict[str, Any]]:
        return [slowed(each, 0.001 if at == side else 1.0) for at, each in enumerate(turns(plans, **options))]

    replace_turns(monkeypatch, sped)
    result = runs(*(each.format(library_dir=engine.library_dir) for each in arguments), "-k", "ffn_up and decode")
    case = _cases(runs)["decode/ffn_up"]
    assert (case["outcome"] == "impossible", result.ret == 1) == (reason is not None, True)
    assert reason is None or reason in case["reason"]


def test_a_faster_side_is_improved(runs: HostRuns) -> None:
    """The direction is new over old: what got faster passes, and is stated to be faster."""
    runs.device.slowdown = {"": 0.8}
    assert runs("--against-args=threads=1").ret == 0
    assert _cases(runs)["decode/ffn_up"]["outcome"] == "improved"


def test_a_margin_of_a_marker_decides_pairs(runs: HostRuns) -> None:
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
    runs.device.contended = True
    assert runs("--against-args=threads=1", BRIEFLY).ret == NOTHING_JUDGED_EXIT
    cases = _cases(runs)
    assert {case["outcome"] for case in cases.values()} == {"invalid"}
    assert "others took up to 80 % of the time of both sides" in cases["decode"]["reason"]


@pytest.mark.parametrize(("slowdown", "exit_code"), [(3.0, SUSPECT_EXIT), (1.3, NOTHING_JUDGED_EXIT)])
def test_what_is_slower_whatever_others_took_looks_slower(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, slowdown: float, exit_code: int
) -> None:
    """Where others disturb the new side of every pair, its questions are suspect beyond all that they took."""
    runs.device.slowdown = {"": slowdown}
    turns = runs.device.run_in_turns

    def disturbed(*arguments: object, **options: object) -> list[dict[str, Any]]:
        old, new = turns(*arguments, **options)
        return [old, {**new, "contention": {**QUIET, "waiting_ns": 4 * 10**8, "others_ratio": 0.4}}]

    replace_turns(monkeypatch, disturbed)
    result = runs("--against-args=threads=1", BRIEFLY)
    assert result.ret == exit_code
    cases = _cases(runs)
    assert cases["decode/ffn_up"]["outcome"] == "invalid"
    if exit_code == SUSPECT_EXIT:
        assert cases["decode"]["outcome"] == "suspect"
        assert "of them disturbed, all of that taken off; looks slower, not proven" in cases["decode"]["reason"]
    else:
        assert cases["decode"]["outcome"] == "invalid"


def test_a_worker_that_fails_is_the_reason_however_much_looked_slower(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs before the failure call nothing suspect."""
    runs.device.slowdown = {"": 3.0}
    turns, n_taken = runs.device.run_in_turns, count()

    def failing(*arguments: object, **options: object) -> list[dict[str, Any]]:
        if next(n_taken) == 3:
            raise MeasurementError("the worker was killed")
        return turns(*arguments, **options)

    replace_turns(monkeypatch, failing)
    runs("--against-args=threads=1")
    case = _cases(runs)["decode"]
    assert (case["outcome"], case["reason"]) == ("invalid", "the worker was killed")


def test_pairs_wait_for_quiet_where_they_are_asked_to(runs: HostRuns) -> None:
    """Two pairs show that the machine is busy; who competes is named, and what is quiet then is judged."""
    runs.device.contended, runs.device.n_busy_looks = True, 2
    result = runs("--against-args=threads=1", "--perf-wait-quiet=60s")
    assert result.ret == 0
    assert {(case["outcome"], case["n_pairs"]) for case in _cases(runs).values()} == {("pass", N_PAIRS)}
    assert len(_turns(runs.device)) == 2 * (2 + N_PAIRS)
    result.stdout.fnmatch_lines(["*llama: the machine was busy from the beginning: *cc1plus*"])


def test_a_session_of_two_speeds_is_told(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both sides slow down from half way on, the ratios stand, and the closing lines and run.json say which."""
    turns = runs.device.run_in_turns

    def throttled(plans: tuple[TurnsPlan, TurnsPlan], **options: object) -> tuple[dict[str, Any], dict[str, Any]]:
        factor = 1.25 if len(_turns(runs.device)) >= 2 * 3 else 1.0
        old, new = turns(plans, **options)
        return slowed(old, factor), slowed(new, factor)

    replace_turns(monkeypatch, throttled)
    result = runs("--against-args=threads=1")
    assert {case["outcome"] for case in _cases(runs).values()} == {"pass"}
    told = "llama: the old side took 24 % longer in the last 3 of 6 pairs (limit 10 %, "
    result.stdout.fnmatch_lines([f"*{told}*"])
    notes = runs.plain()["device_notes"]
    assert [each.startswith(told) for each in notes] == [True]


@pytest.mark.parametrize(
    ("options", "outcome", "is_said"),
    [
        (("--against-args=threads=1",), "invalid", True),
        (("--against-args=threads=1", "--perf-allow-different-output"), "pass", True),
        (("--against-args=type_k=q8_0",), "pass", False),
    ],
)
def test_sides_that_compute_something_else_are_not_judged(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], outcome: str, is_said: bool
) -> None:
    """Every case is INVALID and the first note says why, unless that is allowed; other caches are to differ."""
    monkeypatch.setattr("perfsuite.experiments.pairs.output_errors", lambda *_: {"the greedy tokens": (0.9,)})
    runs(*options)
    cases = _cases(runs).values()
    told = "the two sides compute different outputs: the greedy tokens differ by 90 % (limit 25 %)"
    assert {case["outcome"] for case in cases} == {outcome}
    assert all((told in case["reason"]) == (outcome == "invalid") for case in cases)
    assert [note.endswith(told) for note in runs.plain()["device_notes"][:1]] == [True] * is_said


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
        if len(_turns(runs.device)) == 2 * N_PAIRS and not asked:
            asked.append(board)
            raise kind("no answer for 60 s")
        return Held(problems=problems)

    monkeypatch.setattr("perfsuite.measure.board.local_board.LocalBoard.held", held)
    with suppress(KeyboardInterrupt):
        assert runs("--against-args=threads=1").ret != 0
    assert len(asked) == 1
    assert {(case["outcome"], case["n_pairs"]) for case in _cases(runs).values()} == {(outcome, N_PAIRS)}


def test_settings_are_those_of_the_old_side(runs: HostRuns) -> None:
    """The old side has the arguments, the new side is what the run would measure anyway."""
    runs("--against-args=threads=1 flash_attn=0 type_k=Q8_0 type_v=f32 ubatch=32", "--threads=2")
    old, new = (plan.llama for plan in _plans(runs.device))
    assert (old.n_threads, old.flash_attn, old.type_k, old.type_v, old.n_ubatch) == (1, False, "q8_0", "f32", 32)
    assert (new.n_threads, new.flash_attn, new.type_k, new.type_v, new.n_ubatch) == (2, True, "f16", "f16", 512)


def test_builds_and_models_are_those_of_the_old_side(runs: HostRuns, engine: Engine) -> None:
    runs(f"--against={engine.library_dir}", "--against-model=smollm2-135m-l3-q8_0")
    run = runs.plain()
    assert run["against"] == f"build {engine.library_dir}, model smollm2-135m-l3-q8_0"
    assert f"against {run['against']}" in run["subject"]["llama"]


def test_an_injected_phase_is_one_of_the_new_side(runs: HostRuns) -> None:
    runs("--against-args=threads=2", "--perf-inject=decode=0.5")
    old, new = (plan.llama for plan in _plans(runs.device))
    assert (old.inject_phases, new.inject_phases, new.inject_phase_ratio) == ((), ("decode",), 0.5)
