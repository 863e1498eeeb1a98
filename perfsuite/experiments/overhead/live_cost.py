"""What live delivery costs a run: pairs of processes that take turns, one of them with a subscriber."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from perfsuite.device.profile import Profile
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.experiments.overhead.measurement import Overhead, Side, measure_overhead
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.live import Delivery, kept_subscribed
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.live import LiveToken

#: Longest that the subscriber waits for a record of the other process's turn.
SUBSCRIBER_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCostRun:
    """What the pairs gave."""

    #: Latency with a subscriber over latency without one.
    overhead: Overhead
    #: Tokens that the subscriber received, those of pairs that were left out included.
    n_tokens: int


def measure_live_cost(
    plan: LlamaPlan,
    *,
    profile: Profile,
    board: Board,
    n_pairs: int,
    consume: Callable[[Delivery], None] = lambda delivery: None,
    announce: Callable[[int], None] = lambda n_pairs: None,
    order: random.Random | None = None,
) -> LiveCostRun:
    """Run `plan` in pairs of fresh processes that take turns, the new side with a subscriber in this process.

    `consume` is what the subscriber does with each record; `announce` is called before each pair.

    Raises `MeasurementError`: a worker failed, competition left too few pairs, or the subscriber received nothing.
    """
    n_tokens = 0

    def count(delivery: Delivery) -> None:
        nonlocal n_tokens
        n_tokens += isinstance(delivery.record, LiveToken)
        consume(delivery)

    with work_folder() as folder:
        path = folder / "live.sock"
        with kept_subscribed(path, count, limit_s=SUBSCRIBER_LIMIT_S):
            overhead = measure_overhead(
                Side(plan=replace(plan, live_socket=None)),
                Side(plan=replace(plan, live_socket=str(path))),
                profile,
                board,
                n_pairs=n_pairs,
                announce=announce,
                order=order,
            )
    if not n_tokens:
        raise MeasurementError("the subscriber received no token, so nothing was delivered that could cost anything")
    return LiveCostRun(overhead=overhead, n_tokens=n_tokens)
