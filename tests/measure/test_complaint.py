"""When a replicate cannot be used."""

from __future__ import annotations

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.measure.complaint import others_complaint, waiting_complaint
from perfsuite.measure.contention import Contention

PROFILE = find_profile("host")


def contention(waiting: float | None = 0.0, others: float | None = 0.0, steal: float | None = 0.0) -> Contention:
    """Return a stretch of a second with these shares."""
    waiting_ns = None if waiting is None else round(waiting * 10**9)
    return Contention(
        wall_ns=10**9,
        running_ns=10**9 - (waiting_ns or 0),
        waiting_ns=waiting_ns,
        steal_ratio=steal,
        others_ratio=others,
    )


def test_a_quiet_replicate_is_used() -> None:
    """Neither rule complains of one that had the processors for itself, or where nothing is known."""
    for each in (contention(), contention(None, None, None)):
        assert waiting_complaint(each, PROFILE) is None
        assert others_complaint(each, PROFILE) is None


@pytest.mark.parametrize(
    ("seen", "waiting", "others"),
    [
        (contention(waiting=0.5, others=None), "threads waited 50 % of the time (limit 2 %) for a processor", None),
        (contention(waiting=0.03, others=0.03), "threads waited 3 % of the time (limit 2 %) for a processor", None),
        (contention(others=0.4), None, "other processes took 40 % of the time (limit 5 %) of the processors"),
        (contention(steal=0.2), "the hypervisor took 20 %", "the hypervisor took 20 %"),
    ],
)
def test_competition_is_told_by_its_kind(seen: Contention, waiting: str | None, others: str | None) -> None:
    """The engine minds its threads' waiting, the kernels what others took, and both the hypervisor."""
    for complaint, expected in (
        (waiting_complaint(seen, PROFILE), waiting),
        (others_complaint(seen, PROFILE), others),
    ):
        assert (complaint or "").startswith(expected) if expected else complaint is None


def test_threads_that_wait_for_each_other_have_no_competition() -> None:
    """A build with more threads than processors waits by itself; that is its speed."""
    assert waiting_complaint(contention(waiting=0.4, others=0.01), PROFILE) is None
