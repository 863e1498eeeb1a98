"""Counts that are made of what operators do, so that a fit finds again what made them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from perfsuite.expectation.counted_ratios import CountedRatios, counted_roles, fitted_ratios, role_works
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.records.counts import METRICS, CountedWork, CountRow
from tests.catalogue_workloads import catalogue_workload
from tests.counted_work import WORK

#: Of several widths and lengths.
WORKLOADS = tuple(
    catalogue_workload(name, scenario)
    for name, scenario in (
        ("smollm2-135m-l2-q8_0", "p16-g4"),
        ("smollm2-135m-l2-q8_0", "p32-g2"),
        ("smollm2-360m-l2-q8_0", "p8-g2"),
        ("tinyllama-1.1b-l1-q8_0", "p24-g2"),
    )
)


def made_of_terms(workload: LlamaWorkload, **times: int) -> CountedWork:
    """Return counted work in which each term has a weight by its place; a role may do so many times as much."""
    rows = []
    for work in role_works(workload):
        count = sum(round((100 + place) * term) for found in work.terms.values() for place, term in enumerate(found))
        counts = dict.fromkeys(METRICS, count * times.get(work.role, 1))
        rows.append(CountRow(phase=work.phase.value, role=work.role, **counts))
    return replace(WORK, model=workload.weights.name, scenario=workload.scenario.name, rows=tuple(rows))


@cache
def made_ratios() -> CountedRatios:
    """Return the ratios of such counts, for the build of `WORK`."""
    roles = [role for each in WORKLOADS for role in counted_roles(made_of_terms(each), each)]
    return CountedRatios(
        llama=WORK.llama, compiler=WORK.compiler, processor=WORK.processor, ratios=fitted_ratios(roles)
    )
