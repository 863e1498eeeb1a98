"""Times what docs/results.md states of forecasts: a full sweep of Llama2-7B, and a grid of hardware."""

from __future__ import annotations

import time

import numpy as np

from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import compose, passes_of
from perfsuite.expectation.requests.forecast import forecast_request_grid
from perfsuite.expectation.requests.subject import Optimisations, find_subject
from perfsuite.workload.variant import find_variant, variant_names

N_GEN = 2000
PROMPTS = tuple(32 << step for step in range(8))
RATES = np.linspace(10.0, 100.0, 100)


def sweep(conventions: Conventions) -> None:
    """Cost every decode step of every prompt and variant."""
    subject = find_subject("llama-2-7b")
    for name in variant_names():
        passes = passes_of(subject, Optimisations(variant=find_variant(name)), conventions)
        for n_prompt in PROMPTS:
            assert compose(passes, n_prompt, N_GEN).decode.total is not None


def grid(conventions: Conventions) -> float:
    """Forecast one request on 100 x 100 devices; return the seconds that the grid alone took."""
    optimisations = Optimisations(variant=find_variant("bf16-int4-kv4"))
    request = compose(passes_of(find_subject("llama-2-7b"), optimisations, conventions), 2048, N_GEN)
    started_s = time.perf_counter()
    forecast_request_grid(
        request, conventions, peak_flops_per_s=RATES[:, None] * 1e12, bandwidth_bytes_per_s=RATES * 1e9
    )
    return time.perf_counter() - started_s


for each in Conventions:
    began_s = time.perf_counter()
    sweep(each)
    took_s = time.perf_counter() - began_s
    print(
        f"{each.value}: {len(PROMPTS)} prompts x {len(variant_names())} variants x {N_GEN} steps in {took_s:.3f} s, "
        f"100 x 100 devices in {grid(each):.4f} s"
    )
