"""What is run again where somebody else had the processors: single processes, series of them, pairs and rounds."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError, SaturatedError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.competition import SEEN_AFTER
from perfsuite.measure.contention import Contention
from perfsuite.measure.plan import WORKER_LIMIT_S, Plan, ProbePlan, TurnsPlan
from perfsuite.measure.schedule import (
    N_TRIES,
    N_TURNS,
    Payload,
    Rule,
    Series,
    Witness,
    others_complaint,
    pair_complaint,
    pairs_of,
    replicates_of,
    run_undisturbed,
    take_rounds,
    tried,
    waiting_complaint,
)
from tests.synthetic_plans import CONTENDED, PLAN, QUIET

PROBE = ProbePlan(cache_dir="/cache", n_threads=2, budget_ms=1)
HOST = find_profile("host")
WAITED = "threads waited 50 % of the time (limit 2 %) for a processor"


def contention(waiting: float | None = 0.0, others: float | None = 0.0, steal: float | None = 0.0) -> Contention:
    waiting_ns = None if waiting is None else round(waiting * 10**9)
    known = {"wall_ns": 10**9, "running_ns": 10**9 - (waiting_ns or 0), "waiting_ns": waiting_ns}
    return Contention.from_plain({**known, "steal_ratio": steal, "others_ratio": others})


@pytest.mark.parametrize(
    ("seen", "waiting", "others"),
    [
        (contention(), None, None),
        (contention(None, None, None), None, None),
        (contention(waiting=0.5, others=None), WAITED, None),
        (contention(waiting=0.03, others=0.03), "threads waited 3 % of the time (limit 2 %) for a processor", None),
        # A build with more threads than processors waits for itself; that is its speed.
        (contention(waiting=0.4, others=0.01), None, None),
        (contention(others=0.4), None, "other processes took 40 % of the time (limit 5 %) of the processors"),
        (contention(steal=0.2), *("the hypervisor took 20 % of the time (limit 5 %) of the processors",) * 2),
    ],
)
def test_competition_is_told_by_its_kind(seen: Contention, waiting: str | None, others: str | None) -> None:
    assert (waiting_complaint(seen, HOST), others_complaint(seen, HOST)) == (waiting, others)


@dataclass
class Desk(LocalBoard):
    """A board whose processes are disturbed, or fail, as told in advance; then all are quiet."""

    cache_dir: Path = Path()
    told: list[Mapping[str, Any] | BaseException] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def run(self, plan: Plan, *, extra_environment: Mapping[str, str] | None = None, **_: Any) -> dict[str, Any]:
        self.asked.append((plan, extra_environment))
        told = self.told.pop(0) if self.told else QUIET
        if isinstance(told, BaseException):
            raise told
        return {"number": len(self.asked), "contention": dict(told)}

    def run_in_turns(
        self, plans: tuple[TurnsPlan, TurnsPlan], **settings: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.asked.append((plans, settings))
        return {"contention": dict(self.told.pop(0) if self.told else QUIET)}, {"contention": QUIET}  # type: ignore[call-overload]


def undisturbed(board: Desk, **settings: Any) -> dict[str, Any]:
    return run_undisturbed(board, PROBE, settings.pop("rule", Rule(profile=HOST)), **settings)


@pytest.mark.parametrize("n_disturbed", range(N_TRIES))
def test_a_disturbed_process_is_run_again(n_disturbed: int) -> None:
    """The first undisturbed one counts, all have the same plan and environment, and nothing runs after it."""
    board = Desk(told=[CONTENDED] * n_disturbed)
    assert undisturbed(board, extra_environment={"A": "b"})["number"] == n_disturbed + 1
    assert board.asked == [(PROBE, {"A": "b"})] * (n_disturbed + 1)


@pytest.mark.parametrize("n_tries", [1, 2, 5])
def test_after_so_many_tries_it_gives_up(n_tries: int) -> None:
    board = Desk(told=[CONTENDED] * (n_tries - 1) + [{**QUIET, "steal_ratio": 0.3}])
    message = (
        rf"^probes: disturbed in each of {n_tries} tries, at last the hypervisor took 30 % of the time \(limit 5 %\) "
        r"of the processors; run it when nothing else runs$"
    )
    with pytest.raises(MeasurementError, match=message):
        undisturbed(board, n_tries=n_tries)
    assert len(board.asked) == n_tries


def test_a_process_that_fails_is_not_run_again() -> None:
    board = Desk(told=[MeasurementError("no such device")])
    with pytest.raises(MeasurementError, match=r"^no such device$"):
        undisturbed(board)
    assert len(board.asked) == 1


@pytest.mark.parametrize(("told", "number", "complaint"), [([CONTENDED], 2, None), ([CONTENDED] * 3, 3, WAITED)])
def test_the_last_try_may_be_kept(told: list[Any], number: int, complaint: str | None) -> None:
    take = replicates_of(Desk(told=told), lambda: PROBE)
    (found,), why = tried(take, itemgetter(0), Rule(profile=HOST))
    assert (found["number"], why) == (number, complaint)


class Seen(Witness):
    """Notes what it gets, and says that it is quiet again."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self.told: list[object] = []

    def before(self, n_valid: int) -> None:
        self.told.append(n_valid)

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        self.told.append(complaint is None)

    def is_quiet_again(self, complaint: str) -> bool:
        self.told.append(complaint)
        return self.is_quiet

    def goes_on(self) -> None:
        self.told.append("goes on")

    def competitors(self) -> str:
        return "Seen names them"


def series(*told: Mapping[str, Any] | BaseException, **settings: Any) -> Series[int]:
    take = replicates_of(Desk(told=list(told)), lambda: PROBE)
    return Series(take=take, rules=(Rule(profile=HOST),), keep=lambda payloads: payloads[0]["number"], **settings)


def test_a_series_is_extended_to_what_is_asked() -> None:
    """What is there is not taken again, what is left out is replaced, and fewer may be asked for later."""
    found = series(CONTENDED, QUIET, CONTENDED)
    assert [list(found.extend(n)) for n in (3, 4, 2)] == [[2, 4, 5], [2, 4, 5, 6], [2, 4]]
    assert found.complaints == [WAITED] * 2
    assert found.shortage("runs", is_enough=True) is None


def test_endless_competition_ends_a_series() -> None:
    """As many that were left out as were asked for are enough: what there is comes back, and why it is so little."""
    found = series(QUIET, *[CONTENDED] * 99)
    assert list(found.extend(8)) == [1]
    assert found.shortage("runs", is_enough=False) == f"{WAITED} in 8 of 9 runs; free the machine and run again"


@pytest.mark.parametrize(("is_quiet", "n_complaints"), [(True, 1), (False, 3)])
def test_a_machine_that_is_busy_at_once_is_looked_at_once(is_quiet: bool, n_complaints: int) -> None:
    """After two runs that were left out, and nothing else, one may begin anew; what is left out later is as ever."""
    seen = Seen(is_quiet=is_quiet)
    found = series(*[CONTENDED] * 3, witness=seen)
    assert list(found.extend(4)) == [4, 5, 6, 7]
    assert (len(found.complaints), found.n_before_quiet) == (n_complaints, 3 - n_complaints)
    anew = [] if is_quiet else ["goes on"]
    assert seen.told == [0, False, 0, False, WAITED, *anew, 0, False, 0, True, 1, True, 2, True, 3, True]


SATURATED = {**CONTENDED, "others_ratio": 0.4, "steal_ratio": 0.2}
REFUSED = (
    r"^the device is saturated: others had 60 % and 60 % of its processors' time in the first 2 runs \(refused above "
    r"50 %\){}; end them and run again$"
)


def test_a_saturated_machine_is_refused_after_two_runs() -> None:
    """Others had most of the processors in both, by themselves or under the hypervisor: no third one is tried."""
    seen = Seen()
    found = series(*[SATURATED] * 9, witness=seen)
    with found.broken_off():
        found.extend(8)
    assert isinstance(found.broken_off_by, SaturatedError)
    assert re.match(REFUSED.format("; Seen names them"), str(found.broken_off_by))
    assert (found.valid, len(found.complaints)) == ([], SEEN_AFTER)
    assert found.shortage("runs", is_enough=False) == str(found.broken_off_by)
    assert seen.told.count("goes on") == 0


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([CONTENDED] * 2, id="half of it is noise"),
        pytest.param([SATURATED, CONTENDED], id="one of two"),
        pytest.param([QUIET, SATURATED, SATURATED, SATURATED], id="later"),
        pytest.param([{**CONTENDED, "others_ratio": None}] * 2, id="unknown"),
    ],
)
def test_a_noisy_machine_is_measured_on(told: list[Mapping[str, Any]]) -> None:
    """What others had less of, or not from the beginning, or what nobody knows, is left out and taken again as ever."""
    assert len(series(*told).extend(5)) == 5


def test_a_machine_that_became_quiet_is_not_refused() -> None:
    """Quiet is waited for first; one that is saturated again afterwards is refused then."""
    assert list(series(SATURATED, SATURATED, witness=Seen(is_quiet=True)).extend(2)) == [3, 4]
    with pytest.raises(SaturatedError):
        series(*[SATURATED] * 4, witness=Seen(is_quiet=True)).extend(5)


def test_the_side_that_lost_less_of_a_pair_counts() -> None:
    """Both processes of a pair must have lost most of the processors."""
    rules = (Rule(profile=HOST),) * 2
    pairs = Series(
        take=pairs_of(Desk(told=[SATURATED] * 3), (PLAN, PLAN), order=random.Random(1)), rules=rules, keep=len
    )
    assert len(pairs.extend(2)) == 0
    assert pairs.broken_off_by is None


@pytest.mark.parametrize(
    ("n_disturbed", "budget_s", "n_first", "n_valid", "n_complaints"),
    [
        pytest.param(0, 0.0, 6, 6, 0, id="the first ones are taken whatever they cost"),
        pytest.param(0, 3600.0, 6, 14, 0, id="there is time for all"),
        pytest.param(1, 0.0, 8, 0, 1, id="a busy machine is not waited for beyond the budget"),
        pytest.param(30, 3600.0, 0, 14, 30, id="a neighbour may be busy for half a minute"),
    ],
)
def test_a_budget_ends_a_series(
    n_disturbed: int, budget_s: float, n_first: int, n_valid: int, n_complaints: int
) -> None:
    found = series(*[CONTENDED] * n_disturbed, budget_s=budget_s, n_first=n_first)
    for n in (6, 14):
        found.extend(n)
    assert (len(found.valid), len(found.complaints)) == (n_valid, n_complaints)


def test_what_looks_slower_may_take_half_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is begun that would end beyond the budget, at the pace so far, or beyond half of it more."""
    found = series(budget_s=100.0, n_first=6)
    found.extend(6)
    assert found.n_affordable > 1000
    monkeypatch.setattr(Series, "elapsed_s", 90.0)
    assert found.n_affordable == pytest.approx(6 * 100 / 90)
    assert [len(found.extend(20, is_extra=is_extra)) for is_extra in (False, True)] == [6, 20]
    monkeypatch.setattr(Series, "elapsed_s", 149.0)
    assert len(found.extend(30, is_extra=True)) == 20


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ((0.0, 0.05), None),
        ((0.4, 0.45), None),
        ((0.0, 0.2), "new side alone: they took up to 20 % of its time, and 0 % of the old side's"),
        ((0.3, 0.1), "old side alone: they took up to 30 % of its time, and 10 % of the new side's"),
        ((0.9, 0.9), "others took up to 80 % of the time of both sides"),
    ],
)
def test_a_pair_is_left_out_where_one_side_alone_was_disturbed(lost: tuple[float, float], told: str | None) -> None:
    """What disturbs both sides alike is kept, and which of them was disturbed more makes no difference."""
    contended = {**CONTENDED, "wall_ns": 1000, "running_ns": 1000, "others_ratio": 0.5, "steal_ratio": 0.0}
    sides = [{"contention": {**contended, "waiting_ns": round(1000 * each)}} for each in lost]
    found = pair_complaint(sides)
    assert found == told if told is None else found.removeprefix("others disturbed the ") == told


def taken_pairs(board: Desk, n: int, **settings: Any) -> list[tuple[tuple[TurnsPlan, TurnsPlan], dict[str, Any]]]:
    take = pairs_of(board, (PLAN, PLAN), order=random.Random(1), **settings)
    for _ in range(n):
        take()
    return board.asked


def test_each_side_leads_one_of_two_pairs() -> None:
    """The side that leads is drawn for the first pair of two, and changes for the second; or the caller decides."""
    leaders = [settings["leader"] for _, settings in taken_pairs(Desk(), 40)]
    assert [1 - leader for leader in leaders[::2]] == leaders[1::2]
    assert set(leaders[::2]) == {0, 1}
    assert [settings["leader"] for _, settings in taken_pairs(Desk(), 3, leaders=cycle((1, 0)))] == [1, 0, 1]


def test_each_process_of_a_pair_draws_its_layout() -> None:
    """No two processes have their buffers in the same place by design, and each pair has its turns and environments."""
    environments = {"extra_environment": {"A": "b"}, "own_environments": ({"OLD": "1"}, {})}
    asked = taken_pairs(Desk(), 4, **environments)
    seeds = [plan.llama.layout_seed for plans, _ in asked for plan in plans]
    assert len(set(seeds)) == 8
    assert min(seeds) > 0
    assert [{**settings, "leader": 0} for _, settings in asked] == [
        {"n_turns": N_TURNS, "leader": 0, "hear": None, "limit_s": WORKER_LIMIT_S, **environments}
    ] * 4


def test_rounds_go_through_all_that_are_not_complete() -> None:
    """In an order drawn anew each time, twice as often as wanted at most; the progress shows where it is."""
    told: list[tuple[int, int, int, str]] = []
    complete, late = series(name="a"), series(CONTENDED, CONTENDED, name="b")
    take_rounds([complete, late], 2, order=random.Random(3), announce=lambda *where: told.append(where))
    assert (complete.valid, late.valid) == ([1, 2], [3, 4])
    assert [(number, place, n) for number, place, n, _ in told] == [
        *((number, place, 2) for number in (1, 2) for place in (1, 2)),
        (3, 1, 1),
        (4, 1, 1),
    ]
    assert [name for *_, name in islice(told, 4, None)] == ["b", "b"]
    never = series(*[CONTENDED] * 9)
    take_rounds([never], 2, order=random.Random(3), announce=lambda *_: None)
    assert (never.valid, len(never.complaints)) == ([], 4)


def test_rounds_end_where_no_series_is_measured() -> None:
    """A saturated machine ends a sweep at once; one series that was unlucky does not, where another has a run."""
    lucky, unlucky = series(name="a"), series(SATURATED, SATURATED, name="b")
    take_rounds([lucky, unlucky], 2, order=random.Random(3), announce=lambda *_: None)
    assert (lucky.valid, unlucky.valid) == ([1, 2], [3, 4])
    with pytest.raises(SaturatedError):
        take_rounds([series(*[SATURATED] * 9)], 4, order=random.Random(3), announce=lambda *_: None)
