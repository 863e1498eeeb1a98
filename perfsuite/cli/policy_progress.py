"""How far a measurement is, and how long it will still take, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from perfsuite.units import NS_PER_S, format_count, format_ns

if TYPE_CHECKING:
    from perfsuite.verdict.shapes.policy_question import PolicyQuestion

#: Least time between two lines.
_PERIOD_S = 2.0


def announce(question: PolicyQuestion) -> None:
    """Say what begins, and how much there is of it."""
    counts = f"{format_count(len(question.choices), 'choice')} at {format_count(len(question.sizes), 'size')}"
    print(f"policy: {question.decides.value}, {counts}, each compared with NumPy first", file=sys.stderr, flush=True)


def progress_of(what: str, *, clock: Callable[[], float] = time.monotonic) -> Callable[[int, int], None]:
    """Return what is told the rounds that are done, and of how many; it says the time left by those before.

    The clock starts when none is done.
    """
    begin_s = said_s = clock()

    def tell(done: int, total: int) -> None:
        nonlocal begin_s, said_s
        now_s = clock()
        if done == 0:
            begin_s = said_s = now_s
            return
        if done < total and now_s - said_s < _PERIOD_S:
            return
        said_s = now_s
        left_ns = (now_s - begin_s) / done * (total - done) * NS_PER_S
        left = f", {format_ns(left_ns)} left" if done < total else ""
        print(f"policy: {what}, round {done} of {total}{left}", file=sys.stderr, flush=True)

    return tell
