"""Has a board run plans until enough of what they measured can be used: one by one, in pairs, or in rounds.

There is one rule. A run that had competition is left out, with why, and taken again; a worker that fails is not, for it
would fail again. `Rule` says which run had competition, `Series` how often it is taken again and what is said where too
few could be used. A device that others use for the most part is refused after two runs: whatever follows would be left
out as well. What a series takes is one of three: a process (`processes`), two that take turns (`turns`), or whatever a
caller makes of a board; `take_rounds` goes through several series.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from perfsuite.device.profile import Profile
from perfsuite.errors import AskedError, LinkError, MeasurementError, PlannedError, SaturatedError, UnansweredError
from perfsuite.measure.board.protocol import Board, Hear
from perfsuite.measure.competition import SATURATED_RATIO, SEEN_AFTER, lost_ratio
from perfsuite.measure.contention import LEAST_OTHERS_PART, MOST_LOST_RATIO, Contention, is_one_sided
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan, TurnsPlan, task_of

#: What a worker has sent.
Payload: TypeAlias = dict[str, Any]
Complain: TypeAlias = Callable[[Contention, Profile], str | None]
#: What ends a measurement before its time: somebody, the end of the link, or a worker that fails.
BreakOff = KeyboardInterrupt | LinkError | MeasurementError
Kept = TypeVar("Kept")

#: How often a single process is run at most until one was undisturbed.
N_TRIES = 3

#: Turns of each process of a pair. More of them cost as much time as more pairs do, and only pairs average out what a
#: process draws once (where its pages lie); fewer leave a prefill with too few repetitions.
#: Source: docs/comparing.md, 'A pair'.
N_TURNS = 4

#: A run that is planned has a spare process for so many, since nobody is there to repeat one that had competition.
_SPARE_PART = 3

#: What a series may take, budget included, where it would end with a case that looks slower and is not proven.
EXTRA_RATIO = 1.5


def waiting_complaint(contention: Contention, profile: Profile) -> str | None:
    """Say why a process of the engine cannot be used; None where it can.

    Threads that wait for each other, because a build starts more of them than there are processors, have no competition
    but themselves: what others took then makes up little of the waiting.
    """
    waiting = _beyond(contention.waiting_ratio, profile.max_waiting_ratio)
    if waiting and contention.others_ratio is not None:
        assert contention.waiting_ratio is not None
        waiting = waiting if contention.others_ratio > contention.waiting_ratio * LEAST_OTHERS_PART else None
    return f"threads waited {waiting} for a processor" if waiting else _steal_complaint(contention, profile)


def others_complaint(contention: Contention, profile: Profile) -> str | None:
    """Say why a process of OpenCL kernels cannot be used; None where it can.

    An OpenCL runtime on the processor has more threads than cores and lets them wait for each other, so what counts
    is the time that other processes took.
    """
    others = _beyond(contention.others_ratio, profile.max_others_ratio)
    return f"other processes took {others} of the processors" if others else _steal_complaint(contention, profile)


def _steal_complaint(contention: Contention, profile: Profile) -> str | None:
    steal = _beyond(contention.steal_ratio, profile.max_others_ratio)
    return f"the hypervisor took {steal} of the processors" if steal else None


def pair_complaint(payloads: Sequence[Payload]) -> str | None:
    """Say why a pair cannot be used: where one side was disturbed much more than the other, or hardly anything is left.

    What disturbs both alike is kept: the difference within a pair is what counts. Which side is disturbed more makes no
    difference, so that what is left of an unchanged pair is as likely to be slower as to be faster.
    """
    old, new = (Contention.from_plain(each["contention"]).lost_ratio for each in payloads)
    if is_one_sided(old, new):
        least, most = ("old", "new") if new > old else ("new", "old")
        shares = f"{max(old, new) * 100:.0f} % of its time, and {min(old, new) * 100:.0f} % of the {least} side's"
        return f"others disturbed the {most} side alone: they took up to {shares}"
    if min(old, new) >= MOST_LOST_RATIO:
        return f"others took up to {MOST_LOST_RATIO * 100:.0f} % of the time of both sides"
    return None


def _beyond(ratio: float | None, limit: float) -> str | None:
    return f"{ratio * 100:.0f} % of the time (limit {limit * 100:g} %)" if ratio is not None and ratio > limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which processes can be used: those of which nobody complains."""

    profile: Profile
    complain: Complain = waiting_complaint

    def complaint(self, payload: Mapping[str, Any]) -> str | None:
        """Say why a process cannot be used; None where it can."""
        return self.complain(Contention.from_plain(payload["contention"]), self.profile)


class Runner(Protocol):
    """What runs a plan: a `Board`."""

    def run(
        self, plan: Plan, *, extra_environment: Mapping[str, str] | None = None, files: Path | None = None
    ) -> Payload:
        """Run it in a fresh process and return its payload; what it leaves is in `files` then."""


def replicates_of(
    board: Runner,
    draw: Callable[[], Plan],
    *,
    extra_environment: Mapping[str, str] | None = None,
    files: Path | None = None,
) -> Callable[[], tuple[Payload]]:
    """Return what runs one process at each call, with a plan drawn for it; what the last one left is in `files`."""
    return lambda: (board.run(draw(), extra_environment=extra_environment, files=files),)


def pairs_of(
    board: Board,
    plans: tuple[LlamaPlan, LlamaPlan],
    *,
    order: random.Random,
    leaders: Iterator[int] | None = None,
    extra_environment: Mapping[str, str] | None = None,
    own_environments: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    hear: Hear | None = None,
    limit_s: float = WORKER_LIMIT_S,
) -> Callable[[], tuple[Payload, Payload]]:
    """Return what lets two processes take `N_TURNS` turns each at each call, every process with a layout of its own.

    Both of a pair read the same prompts, another one at each turn; those of the next pair are others.

    `hear` is given the live records of those that offer any.

    `leaders` says who has the first turn, 0 or 1, pair by pair; by default it is drawn for the first pair of two, and
    the other one leads the second.
    """
    leaders = leaders or _drawn_leaders(order)

    def take() -> tuple[Payload, Payload]:
        leader = next(leaders)
        seed = order.randrange(2**31)
        first, second = (TurnsPlan(llama=replace(with_drawn_layout(plan, order), seed=seed)) for plan in plans)
        return board.run_in_turns(
            (first, second),
            n_turns=N_TURNS,
            leader=leader,
            extra_environment=extra_environment,
            own_environments=own_environments,
            hear=hear,
            limit_s=limit_s,
        )

    return take


def _drawn_leaders(order: random.Random) -> Iterator[int]:
    while True:
        first = order.randrange(2)
        yield first
        yield 1 - first


class Witness:
    """Hears of each run of a series; this one has nothing to say."""

    #: What to do where others use the device for the most part.
    remedy: ClassVar[str] = "end them and run again"

    def before(self, n_valid: int) -> None:
        """Look at the machine: a run is about to start, after so many that can be used."""

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        """Look at what a run has sent, and why it is left out, if it is."""

    def is_quiet_again(self, complaint: str) -> bool:
        """Whether to begin anew, where the first `SEEN_AFTER` runs were all left out; asked once."""
        return False

    def goes_on(self) -> None:
        """Hear that it was not quiet again, and is measured all the same."""

    def competitors(self) -> str:
        """Say who competes, as far as it can be seen."""
        return ""


@dataclass(kw_only=True)
class Series(Generic[Kept]):
    """Runs of one kind: those that can be used, and why others were left out."""

    #: Runs once more and returns its payloads: one, or those of a pair.
    take: Callable[[], Sequence[Payload]]
    #: Reduces the payloads of a run that can be used.
    keep: Callable[[Sequence[Payload]], Kept]
    #: One for each payload of a run; the first complaint counts.
    rules: Sequence[Rule] = ()
    #: Says why a run as a whole cannot be used, in place of the rules.
    complain: Callable[[Sequence[Payload]], str | None] | None = None
    witness: Witness = field(default_factory=Witness)
    #: Time for the series, s; half as long again where it is extended once more. None is without limit.
    budget_s: float | None = None
    #: So many are taken whatever they cost, unless there is competition.
    n_first: int = 0
    #: What the series is of, for messages.
    name: str = ""
    valid: list[Kept] = field(default_factory=list)
    #: Why runs were left out.
    complaints: list[str] = field(default_factory=list)
    #: Left out before quiet was waited for.
    n_before_quiet: int = 0
    broken_off_by: BreakOff | None = None
    #: What others had of the processors in the runs that were left out.
    _lost_ratios: list[float] = field(default_factory=list)
    _began_s: float = field(default_factory=time.monotonic)
    _was_busy: bool = False
    #: Why there are no more, where what came back is all that there is.
    _unanswered: UnansweredError | None = None

    def extend(self, n_wanted: int, *, most_left_out: int | None = None, is_extra: bool = False) -> Sequence[Kept]:
        """Run until so many can be used; fewer come back when time is up, or with no budget when as many are left out.

        Extra runs may take half of the budget once more.

        Raises `SaturatedError` where others had most of the processors in the first runs.
        """
        if most_left_out is None:
            most_left_out = n_wanted if self.budget_s is None else sys.maxsize
        limit_s = None if self.budget_s is None else self.budget_s * (EXTRA_RATIO if is_extra else 1.0)
        try:
            while len(self.valid) < n_wanted and len(self.complaints) < most_left_out and not self._is_over(limit_s):
                self.take_one()
        except AskedError as asked:
            self._plan((asked.n_runs or n_wanted + max(1, n_wanted // _SPARE_PART)) - 1)
        except UnansweredError as error:
            if not self.valid:
                raise
            self._unanswered = error
        return self.valid[:n_wanted]

    def _plan(self, n_more: int) -> None:
        """Ask for so many more runs than the first, of which nobody knows yet what they come to."""
        for _ in range(n_more):
            with suppress(AskedError):
                self.take_one()
        raise PlannedError(f"{self.name or 'a series'}: {n_more + 1} runs are planned")

    def take_one(self) -> None:
        """Run once more, and keep what came of it."""
        self.witness.before(len(self.valid))
        payloads = self.take()
        complaint = self._complaint(payloads)
        self.witness.after(payloads, complaint)
        if complaint is None:
            self.valid.append(self.keep(payloads))
            return
        self.complaints.append(complaint)
        self._lost_ratios.append(min(lost_ratio(Contention.from_plain(each["contention"])) for each in payloads))
        if not self.valid and len(self.complaints) == SEEN_AFTER:
            self._begin_anew_or_refuse(complaint)

    def _complaint(self, payloads: Sequence[Payload]) -> str | None:
        if self.complain is not None:
            return self.complain(payloads)
        complaints = (rule.complaint(payload) for rule, payload in zip(self.rules, payloads, strict=True))
        return next(filter(None, complaints), None)

    def _begin_anew_or_refuse(self, complaint: str) -> None:
        is_first, self._was_busy = not self._was_busy, True
        if is_first and self.witness.is_quiet_again(complaint):
            self.n_before_quiet += len(self.complaints)
            self.complaints.clear()
            self._lost_ratios.clear()
            self._began_s = time.monotonic()
        elif min(self._lost_ratios) > SATURATED_RATIO:
            raise _saturated(self._lost_ratios, self.witness)
        elif is_first:
            self.witness.goes_on()

    @contextmanager
    def broken_off(self, *, by_failure: bool = True) -> Iterator[None]:
        """Keep what was measured before a Ctrl-C, the end of the link, or a worker that fails; say what ended it.

        A worker that fails before anything can be used is an error, and so is any where `by_failure` is False.
        """
        try:
            yield
        except (KeyboardInterrupt, LinkError, SaturatedError) as error:  # whoever measures several series ends the run
            self.broken_off_by = error
        except MeasurementError as error:
            if not (by_failure and self.valid):
                raise
            self.broken_off_by = error

    def shortage(self, what: str, *, is_enough: bool, n_wanted: int | None = None) -> str | None:
        """Say why too few runs can be used, and what to do about it; None where there are enough."""
        if isinstance(self.broken_off_by, MeasurementError):
            return str(self.broken_off_by)
        if is_enough:
            return None
        n_valid, n_left_out = len(self.valid), len(self.complaints)
        if self._unanswered is not None:
            return f"{self._unanswered} ({n_valid} {what} can be used)"
        if self.broken_off_by is not None:
            how = "the link was lost" if isinstance(self.broken_off_by, LinkError) else "interrupted"
            wanted = "" if n_wanted is None else f" of {n_wanted}"
            return f"{how} after {n_valid}{wanted} {what}; run again"
        seen = f"{self.complaints[-1]} in {n_left_out} of {n_left_out + n_valid} {what}"
        return f"{seen}; free the machine and run again"

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning."""
        return time.monotonic() - self._began_s

    @property
    def n_affordable(self) -> float:
        """How many runs the budget allows in all, at the pace so far."""
        if self.budget_s is None or not self.valid:
            return math.inf
        return self.budget_s * len(self.valid) / max(self.elapsed_s, 1e-9)

    def _is_over(self, limit_s: float | None) -> bool:
        """Whether one more would end beyond the limit; a device that is slow, and not busy, has its first look."""
        if limit_s is None:
            return False
        if len(self.valid) < self.n_first:
            return bool(self.complaints) and self.elapsed_s > limit_s
        return self.elapsed_s * (1.0 + 1.0 / max(1, len(self.valid) + len(self.complaints))) > limit_s


def _saturated(lost_ratios: Sequence[float], witness: Witness) -> SaturatedError:
    """Return the error for a device that others use for the most part."""
    shares = " and ".join(f"{each * 100:.0f} %" for each in lost_ratios)
    who = witness.competitors()
    now = f"; {who}" if who else ""
    return SaturatedError(
        f"the device is saturated: others had {shares} of its processors' time in the first {len(lost_ratios)} runs "
        f"(refused above {SATURATED_RATIO * 100:g} %){now}; {witness.remedy}"
    )


def tried(
    take: Callable[[], Kept], payload_of: Callable[[Kept], Mapping[str, Any]], rule: Rule, *, n_tries: int = N_TRIES
) -> tuple[Kept, str | None]:
    """Run until one process can be used; return what it made, or what the last one made and why it cannot be used."""
    for _ in range(n_tries):
        made = take()
        complaint = rule.complaint(payload_of(made))
        if complaint is None:
            break
    return made, complaint


def run_undisturbed(
    board: Runner,
    plan: Plan,
    rule: Rule,
    *,
    n_tries: int = N_TRIES,
    extra_environment: Mapping[str, str] | None = None,
    files: Path | None = None,
) -> Payload:
    """Run a plan in fresh processes until one can be used; return its payload, and leave its files in `files`.

    Raises `MeasurementError` where none of `n_tries` can, with what the last one met; or a worker failed.
    """
    (payload,), complaint = tried(
        replicates_of(board, lambda: plan, extra_environment=extra_environment, files=files),
        itemgetter(0),
        rule,
        n_tries=n_tries,
    )
    if complaint is not None:
        raise MeasurementError(
            f"{task_of(plan)}: disturbed in each of {n_tries} tries, at last {complaint}; run it when nothing else runs"
        )
    return payload


def take_rounds(
    series: Sequence[Series[Kept]],
    n_wanted: int,
    *,
    order: random.Random,
    announce: Callable[[int, int, int, str], None],
) -> None:
    """Go through all series in turn, in an order drawn anew, so that a slow minute is shared by all of them.

    It ends when each has `n_wanted` runs that can be used, or with twice as many rounds. `announce` is given the number
    of the round, the place in it from 1 on, how many places it has, and the name of the series.

    Raises `SaturatedError` as `Series.extend`, while no series has a run that can be used.
    """
    for at in range(2 * n_wanted):
        waiting = [each for each in series if len(each.valid) < n_wanted]
        order.shuffle(waiting)
        for place, each in enumerate(waiting):
            announce(at + 1, place + 1, len(waiting), each.name)
            try:
                each.take_one()
            except SaturatedError:
                if not any(other.valid for other in series):
                    raise
