"""What a kernel's record derives from its timestamps, and the way there and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from perfsuite.measure.kernel_record import KernelRecord


def _record(**changed: Any) -> KernelRecord:
    fields: dict[str, Any] = {
        "case_id": "kernel/add/count1/f32",
        "error_norm": 1e-7,
        "tolerance": 1e-5,
        "queued_ns": (0, 100, 200),
        "submit_ns": (10, 110, 210),
        "start_ns": (20, 105, 220),
        "end_ns": (50, 130, 220),
    }
    return KernelRecord(**{**fields, **changed})


@pytest.mark.parametrize(("n_per_round", "rounds_ns"), [(0, ((30, 25),)), (1, ((30,), (25,), ())), (2, ((30, 25), ()))])
def test_rounds(n_per_round: int, rounds_ns: tuple[tuple[int, ...], ...]) -> None:
    """A round has the known lengths of its own launches, none where there is none; without rounds it is one."""
    assert _record(n_per_round=n_per_round).rounds_ns == rounds_ns


@pytest.mark.parametrize(
    ("start_ns", "end_ns"),
    [
        ((20, 0, 220), (50, 130, 240)),
        ((20, 105, 220), (50, 0, 240)),
        ((20, 140, 220), (50, 130, 240)),
        ((20, 45, 220), (50, 130, 240)),
    ],
)
def test_a_launch_whose_times_cannot_be_right_has_no_length(start_ns: Sequence[int], end_ns: Sequence[int]) -> None:
    """A zero, an END before its START and a START before the END in front each leave one launch out."""
    assert _record(start_ns=tuple(start_ns), end_ns=tuple(end_ns)).lengths_ns == (30, None, 20)


@pytest.mark.parametrize(
    ("norm", "is_correct"), [(0.0, True), (1e-5, True), (1.1e-5, False), (math.inf, False), (math.nan, False)]
)
def test_correctness(norm: float, is_correct: bool) -> None:
    assert _record(error_norm=norm).is_correct is is_correct
