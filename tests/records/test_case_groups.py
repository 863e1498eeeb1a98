"""Which group measured a case."""

from __future__ import annotations

import pytest

from perfsuite.records.case_groups import OWN_GROUP, group_of


@pytest.mark.parametrize(
    ("kind", "group"),
    [("phase", "llama"), ("kernel", "kernels"), ("roofline", "roofline"), ("mine", OWN_GROUP), ("trace", OWN_GROUP)],
)
def test_a_case_belongs_to_the_group_that_was_measured(kind: str, group: str) -> None:
    """By its kind; one of a group that the run did not measure belongs to a test of your own."""
    assert group_of(kind, ("llama", "kernels", "roofline")) == group
