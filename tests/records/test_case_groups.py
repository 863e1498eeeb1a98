"""Which group measured a case."""

from __future__ import annotations

import pytest

from perfsuite.records.case_groups import OWN_GROUP, group_of, is_question


@pytest.mark.parametrize(
    ("kind", "group"),
    [("phase", "llama"), ("kernel", "kernels"), ("roofline", "roofline"), ("mine", OWN_GROUP), ("trace", OWN_GROUP)],
)
def test_a_case_belongs_to_the_group_that_was_measured(kind: str, group: str) -> None:
    """By its kind; one of a group that the run did not measure belongs to a test of your own."""
    assert group_of(kind, ("llama", "kernels", "roofline")) == group


@pytest.mark.parametrize(
    ("case_id", "is_asked"),
    [(f"phase/a/siso/{phase}", True) for phase in ("end_to_end", "prefill", "decode", "embed")]
    + [(f"phase/a/siso/{phase}", False) for phase in ("embedding", "copy", "encode_image", "prefill/x")]
    + [(f"{kind}/a/siso/decode", False) for kind in ("operator", "binding", "phases", "decode")],
)
def test_the_whole_run_and_what_reads_and_writes_are_questions(case_id: str, is_asked: bool) -> None:
    """Other phases and other kinds are parts."""
    assert is_question(case_id) is is_asked
