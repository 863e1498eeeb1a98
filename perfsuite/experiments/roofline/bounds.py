"""Ceilings held against programs that are not ours: what another program reaches, a ceiling must not be below."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate
from perfsuite.expectation.roofline.roofline_run import RooflineRun
from perfsuite.units import format_bytes_per_s, format_flops_per_s
from perfsuite.verdict.statement import Statement

#: What a ceiling may stay below another program: minutes of a shared machine differ by as much.
TOLERANCE_RATIO = 0.10

#: What is bounded, on the processor and through OpenCL.
BOUNDED = (
    *("bound/cpu/fp32", "bound/cpu/read", "bound/cpu/copy", "bound/cpu/triad"),
    *("bound/opencl/fp32", "bound/opencl/read"),
)

_CLAIM = f"no other program is faster than the ceiling by more than {TOLERANCE_RATIO:.0%}"


def bound_check(run: RooflineRun, name: str) -> Statement:
    """Check one of `BOUNDED`; undecided where no program was there to tell."""
    _, where, kind = name.split("/")
    rates = [each for each in run.bounds if each.kind == kind and (each.processor == CPU) is (where == CPU)]
    pairs = [(each, ceiling) for each in rates if (ceiling := _ceiling(run, each)) is not None]
    if not pairs:
        return Statement(name=name, claim=_CLAIM, holds=None, evidence=_untold(rates, where, kind))
    least = 1.0 - TOLERANCE_RATIO
    holds = all(ceiling.rate and ceiling.rate.best_per_s >= least * each.best_per_s for each, ceiling in pairs)
    return Statement(name=name, claim=_CLAIM, holds=holds, evidence="; ".join(_told(pairs)))


def bound_checks(run: RooflineRun) -> tuple[Statement, ...]:
    """Check every bound, where independent programs were asked."""
    return tuple(bound_check(run, name) for name in BOUNDED) if run.bounds else ()


def _ceiling(run: RooflineRun, rate: IndependentRate) -> Ceiling | None:
    """Return the ceiling of the same work on as many threads; of bandwidths, over the largest working set."""
    alike = [
        each
        for each in run.survey.ceilings
        if each.rate
        and (each.processor, each.resource, each.kind) == (rate.processor, rate.resource, rate.kind)
        and each.n_threads == rate.n_threads
    ]
    return max(alike, key=lambda each: each.working_set_bytes or 0, default=None)


def _untold(rates: Sequence[IndependentRate], where: str, kind: str) -> str:
    if rates:
        programs = ", ".join(dict.fromkeys(each.program for each in rates))
        return f"no ceiling of ours was measured beside {kind} of {programs} on as many threads of the same processor"
    return f"no independent program has measured {kind} of {where}; install likwid, STREAM or clpeak"


def _told(pairs: Sequence[tuple[IndependentRate, Ceiling]]) -> list[str]:
    return [
        f"{_amount(each.resource, ceiling.rate.best_per_s)} against {each.program}'s "
        f"{_amount(each.resource, each.best_per_s)}{_threads(each)}"
        for each, ceiling in pairs
        if ceiling.rate
    ]


def _amount(resource: Resource, per_s: float) -> str:
    return format_bytes_per_s(per_s) if resource is Resource.BANDWIDTH else format_flops_per_s(per_s)


def _threads(rate: IndependentRate) -> str:
    return "" if rate.n_threads is None else f" (threads: {rate.n_threads})"
