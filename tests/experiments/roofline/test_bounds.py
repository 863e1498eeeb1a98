"""Ceilings against programs of others; ours reads 20 GB/s of memory and computes 400 GFLOP/s."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.experiments.roofline.bounds import BOUNDED, bound_check, bound_checks
from tests.synthetic_roofline import bandwidth_ceiling, compute_ceiling, independent_rate, roofline_run, survey


def arithmetic(best_per_s: float, **changes: object) -> IndependentRate:
    """Return what NumPy computes."""
    usual = independent_rate(resource=Resource.COMPUTE, kind="fp32", best_per_s=best_per_s)
    return replace(usual, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("best_per_s", "holds"),
    [(10e9, True), (20e9, True), (22.2e9, True), (22.3e9, False), (60e9, False)],
)
def test_a_bandwidth_below_another_program_is_told(best_per_s: float, holds: bool) -> None:
    """A ceiling may stay a tenth below what another program reads, and no further."""
    found = bound_check(roofline_run(bounds=(independent_rate(best_per_s=best_per_s),)), "bound/cpu/read")
    assert (found.name, found.holds) == ("bound/cpu/read", holds)
    assert found.evidence == f"20.0 GB/s against numpy's {best_per_s / 1e9:.1f} GB/s (threads: 2)"


@pytest.mark.parametrize(("best_per_s", "holds"), [(300e9, True), (444e9, True), (445e9, False)])
def test_arithmetic_below_another_program_is_told(best_per_s: float, holds: bool) -> None:
    """The same tenth holds for FLOPs."""
    found = bound_check(roofline_run(bounds=(arithmetic(best_per_s),)), "bound/cpu/fp32")
    assert found.holds is holds
    assert "GFLOP/s" in found.evidence


def test_one_program_of_several_suffices() -> None:
    """Any program that is faster fails the ceiling, and all of them are told."""
    rates = (independent_rate(), independent_rate(program="stream", best_per_s=30e9))
    for bounds in (rates, rates[::-1]):
        found = bound_check(roofline_run(bounds=bounds), "bound/cpu/read")
        assert found.holds is False
        assert "numpy's" in found.evidence
        assert "stream's 30.0 GB/s" in found.evidence


def test_the_largest_working_set_is_what_counts() -> None:
    """A cache's five times faster plateau does not excuse memory."""
    assert survey().of(n_threads=2).levels[0][1] == 100e9
    run = roofline_run(bounds=(independent_rate(best_per_s=40e9),))
    assert bound_check(run, "bound/cpu/read").holds is False


def test_threads_are_compared_with_as_many() -> None:
    """One thread of another program is held against one thread of ours."""
    one = independent_rate(n_threads=1, best_per_s=10.5e9)
    run = roofline_run(survey=survey(1, 2), bounds=(one,))
    assert bound_check(run, "bound/cpu/read").evidence.startswith("10.0 GB/s against numpy's 10.5")
    assert bound_check(run, "bound/cpu/read").holds is True


def test_absent_programs_are_told() -> None:
    """Where no program was there for it, nothing is decided, and the programs to install are named."""
    run = roofline_run(bounds=(independent_rate(),))
    found = {check.name: check for check in bound_checks(run)}
    assert tuple(found) == BOUNDED
    assert [name for name, check in found.items() if check.holds is not None] == ["bound/cpu/read"]
    assert found["bound/opencl/fp32"].evidence == (
        "no independent program has measured fp32 of opencl; install likwid, STREAM or clpeak"
    )


def test_a_rate_without_a_ceiling_is_undecided_for_that_reason() -> None:
    """A program that ran on other threads, or beside a ceiling that is missing, is not called absent."""
    strange = roofline_run(bounds=(independent_rate(n_threads=7),))
    found = bound_check(strange, "bound/cpu/read")
    assert found.holds is None
    assert found.evidence.startswith("no ceiling of ours was measured beside read of numpy")


def test_a_run_that_asked_nobody_has_no_bounds() -> None:
    """Without independent rates there is nothing to say, not even that programs are absent."""
    assert bound_checks(roofline_run()) == ()


@pytest.mark.parametrize(("best_per_s", "holds"), [(900e9, True), (1200e9, False)])
def test_opencl_is_held_against_its_own_device(best_per_s: float, holds: bool) -> None:
    """Ceilings of an OpenCL device have no threads, and the processor's are not taken for them."""
    device = "A device"
    own = [replace(each, processor=device) for each in (compute_ceiling(1000e9, n_threads=None),)]
    run = roofline_run(
        survey=Survey(ceilings=(*survey().ceilings, *own)),
        bounds=(arithmetic(best_per_s, program="clpeak", processor=device, n_threads=None),),
    )
    found = bound_check(run, "bound/opencl/fp32")
    assert found.holds is holds
    assert "threads" not in found.evidence
    assert bound_check(run, "bound/cpu/fp32").holds is None


def test_each_kind_of_stream_is_bounded_by_itself() -> None:
    """A triad that is too slow does not fail the read."""
    levels = [
        bandwidth_ceiling(20e9 if kind != "triad" else 5e9, 10**9, kind=kind, n_threads=2) for kind in BANDWIDTH_KINDS
    ]
    rates = tuple(independent_rate(kind=kind) for kind in BANDWIDTH_KINDS)
    run = roofline_run(survey=Survey(ceilings=(*levels, compute_ceiling(400e9))), bounds=rates)
    holds = {kind: bound_check(run, f"bound/cpu/{kind}").holds for kind in BANDWIDTH_KINDS}
    assert holds == {"read": True, "copy": True, "triad": False}
