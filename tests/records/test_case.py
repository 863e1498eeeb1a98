"""The case that somebody names."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.case import OWN_GROUP, group_of, is_question, named_case


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


_MODEL = "smollm2-135m-q8_0/siso"
_CASES = (
    *(f"phase/{_MODEL}/{phase}" for phase in ("prefill", "decode")),
    *(f"operator/{_MODEL}/{phase}/{role}" for phase in ("prefill", "decode") for role in ("ffn_up", "ffn_down")),
    "own/decode",
    *(f"own/{letter}/sum" for letter in "abcdef"),
)


@pytest.mark.parametrize(
    ("asked", "case_id"),
    [
        (f"phase/{_MODEL}/decode", f"phase/{_MODEL}/decode"),
        ("own/decode", "own/decode"),
        ("siso/decode", f"phase/{_MODEL}/decode"),
        ("decode/ffn_up", f"operator/{_MODEL}/decode/ffn_up"),
        ("prefill", f"phase/{_MODEL}/prefill"),
    ],
)
def test_a_case_is_named_by_its_id_or_its_end(asked: str, case_id: str) -> None:
    """An id is itself, whatever else ends so; an end is of whole parts."""
    assert named_case(asked, _CASES, "--case=") == case_id


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("ecode", "--case=ecode: no case has this id, or ends so; did you mean decode?"),
        ("decode/ffn_upp", "--case=decode/ffn_upp: no case has this id, or ends so; did you mean decode/ffn_up?"),
        ("tok", "--case=tok: no case has this id, or ends so"),
        (
            "decode",
            f"--case=decode: 2 cases end so: phase/{_MODEL}/decode, own/decode; name more parts of one",
        ),
        (
            "sum",
            "--case=sum: 6 cases end so: own/a/sum, own/b/sum, own/c/sum, own/d/sum and 2 more; name more parts of one",
        ),
    ],
)
def test_an_end_of_none_or_of_several_is_refused(asked: str, told: str) -> None:
    """With what is like it, or with the first that end so and the number of the others."""
    with pytest.raises(PerfsuiteError) as caught:
        named_case(asked, _CASES, "--case=")
    assert str(caught.value) == told
