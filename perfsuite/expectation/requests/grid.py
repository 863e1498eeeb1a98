"""The forecast of a request over a grid of devices at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from perfsuite.expectation.requests.analytic import Conventions, Floats, PassTimes, forecast_grid, tpot_s
from perfsuite.expectation.requests.composition import RequestCost
from perfsuite.records.op_cost import OpCost


@dataclass(frozen=True, kw_only=True, eq=False)
class RequestGrid:
    """TTFT and mean TPOT on every device of a grid, seconds."""

    #: Times of the prefill; its `ratio` says what bounds it.
    prefill: PassTimes
    #: Times of the mean decode step.
    decode: PassTimes
    ttft_s: Floats
    #: Mean over the steps, as of `forecast_request`.
    tpot_s: Floats

    @property
    def tokens_per_s(self) -> Floats:
        """TPS = 1 / TPOT."""
        return 1.0 / self.tpot_s


def forecast_request_grid(cost: RequestCost, conventions: Conventions, **rates: ArrayLike) -> RequestGrid:
    """Forecast a request on every device of a grid, whose rates are those of `forecast_grid` and broadcast alike.

    Steps that cost the same are timed once. *Source*: LIFE, Fig. 4 and 5.
    """
    prefill, decode = forecast_grid(cost.prefill.total, **rates), forecast_grid(cost.decode.mean().total, **rates)
    if conventions is Conventions.PAPER:  # t_m is linear in the bytes, so the mean step gives the mean time
        step_s = tpot_s(decode, conventions)
    else:
        step_s = sum(
            (tpot_s(forecast_grid(step, **rates), conventions) * share for step, share in _distinct_steps(cost)),
            start=np.zeros_like(decode.memory_s),
        )
    return RequestGrid(prefill=prefill, decode=decode, ttft_s=prefill.longer_s, tpot_s=step_s)


def _distinct_steps(cost: RequestCost) -> Iterator[tuple[OpCost, float]]:
    """Yield every cost that a step has, with the share of the steps that have it."""
    total = cost.decode.total
    rows, counts = np.unique(np.stack((total.flops, total.moved_bytes, total.n_dispatches)), axis=1, return_counts=True)
    for (flops, moved_bytes, n_dispatches), count in zip(rows.T.tolist(), counts.tolist(), strict=True):
        yield OpCost(flops=flops, read_bytes=moved_bytes, n_dispatches=n_dispatches), count / cost.n_gen
