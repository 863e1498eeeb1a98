"""Times what docs/results.md states of forecasts: a full sweep of Llama2-7B."""

from __future__ import annotations

import time

from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import compose, passes_of
from perfsuite.expectation.requests.subject import Optimisations, Subject
from perfsuite.workload.catalog import find
from perfsuite.workload.variant import find_variant, variant_names

N_GEN = 2000
PROMPTS = tuple(32 << step for step in range(8))


def sweep(conventions: Conventions) -> None:
    """Cost every decode step of every prompt and variant."""
    subject = Subject(architecture=find("llama-2-7b"))
    for name in variant_names():
        passes = passes_of(subject, Optimisations(variant=find_variant(name)), conventions)
        for n_prompt in PROMPTS:
            assert compose(passes, n_prompt, N_GEN).decode.total is not None


for each in Conventions:
    began_s = time.perf_counter()
    sweep(each)
    took_s = time.perf_counter() - began_s
    print(f"{each.value}: {len(PROMPTS)} prompts x {len(variant_names())} variants x {N_GEN} steps in {took_s:.3f} s")
