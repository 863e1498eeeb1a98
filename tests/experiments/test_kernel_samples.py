"""Samples of OpenCL kernels, from made-up records."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import Case
from perfsuite.experiments.kernel_samples import dropped_text, kernel_samples
from perfsuite.measure.kernel_record import KernelRecord

CASE = Case(case_id="kernel/add/count1/f32", kind="kernel")


def record(**ends: int) -> KernelRecord:
    """Return ten launches of 100 ns; `ends` are other ENDs, by launch."""
    starts = tuple(range(1000, 11_000, 1000))
    return KernelRecord(
        case_id=CASE.case_id,
        error_norm=0.0,
        tolerance=1.0,
        queued_ns=starts,
        submit_ns=starts,
        start_ns=starts,
        end_ns=tuple(ends.get(f"n{number}", start + 100) for number, start in enumerate(starts)),
    )


@pytest.mark.parametrize(("ends", "n_zero"), [({"n9": 0}, 1), ({"n9": 9_000}, 0), ({"n8": 0, "n9": 0}, 2)])
def test_launches_that_cannot_be_right_are_dropped_and_counted(ends: dict[str, int], n_zero: int) -> None:
    """Of ten launches one may be dropped; with two the kernel is invalid, and says how many of how many, and why."""
    records = [record(**ends)]
    found = kernel_samples(CASE, records, (), 1)
    assert found.samples_ns == (100,)
    (text,) = dropped_text(records)
    odd = f"{n_zero} without a time, {len(ends) - n_zero} in the wrong order"
    assert text == f"{len(ends)} of 10 launches have no START and END that can be right, and are left out ({odd})"
    assert found.problems == ((text,) if len(ends) > 1 else ())
    assert tuple(dropped_text([record()])) == ()
