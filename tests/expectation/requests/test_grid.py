"""The forecast of a request over a grid."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.expectation.requests.analytic import Bound, Conventions
from perfsuite.expectation.requests.composition import compose, passes_of
from perfsuite.expectation.requests.forecast import forecast_request
from perfsuite.expectation.requests.grid import forecast_request_grid
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.expectation.requests.rates import rates_of
from perfsuite.expectation.requests.subject import find_subject
from perfsuite.workload.variant import find_variant

TOPS = np.array([0.02, 1.0, 50.0])
BANDWIDTHS = np.array([5.0, 60.0, 900.0, 40_000.0])


@pytest.mark.parametrize("conventions", list(Conventions))
def test_every_place_is_the_forecast_of_its_device(conventions: Conventions) -> None:
    """TTFT, TPOT, TPS and what bounds them equal those of each device by itself, bound by compute or by memory."""
    optimisations = Optimisations(variant=find_variant("bf16-int4-kv4"))
    cost = compose(passes_of(find_subject("llama-3.2-1b"), optimisations, conventions), 200, 300)
    grid = forecast_request_grid(
        cost,
        conventions,
        peak_flops_per_s=TOPS[:, None] * 1e12,
        bandwidth_bytes_per_s=BANDWIDTHS * 1e9,
        compute_efficiency_ratio=0.5,
        memory_efficiency_ratio=0.8,
        dispatch_s=2e-6,
    )
    assert grid.ttft_s.shape == grid.tpot_s.shape == (3, 4)
    bounds = set()
    for place in np.ndindex(3, 4):
        rates = rates_of(
            tops=TOPS[place[0]],
            bandwidth_gb_per_s=BANDWIDTHS[place[1]],
            compute_efficiency=0.5,
            memory_efficiency=0.8,
            dispatch_us=2,
        )
        alone = forecast_request(cost, rates, conventions)
        assert grid.ttft_s[place] == pytest.approx(alone.prefill.time_s)
        assert grid.tpot_s[place] == pytest.approx(alone.decode.time_s)
        assert grid.tokens_per_s[place] == pytest.approx(alone.decode.tokens_per_s)
        assert bool(grid.prefill.ratio[place] > 1.0) is (alone.prefill.bound is Bound.COMPUTE)
        bounds |= {(alone.prefill.bound, alone.decode.bound)}
    assert len(bounds) == 3
