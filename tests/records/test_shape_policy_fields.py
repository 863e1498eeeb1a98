"""Fields of JSON objects, by place and name."""

from __future__ import annotations

import pytest

from perfsuite.errors import PolicyError
from perfsuite.records.shape_policy_fields import Fields, is_size, shown


def test_a_place_leads_to_its_parts() -> None:
    """The first joint parts the file from the field, the others part fields."""
    fields = Fields({"a": {"b": [{"c": 0}]}}, "f.json")
    with pytest.raises(PolicyError, match=r"^f\.json: a\.b\[0\]: c is 0, expected a whole number"):
        fields.part("a", lambda a: a.each("b", lambda b: b.size("c")))


@pytest.mark.parametrize(("value", "expected"), [(1, True), (0, False), (True, False), (1.0, False), (2**31, False)])
def test_a_size_is_what_a_c_int_holds(value: object, expected: bool) -> None:
    """Sizes are whole numbers from 1 up to the largest int; a truth value is none."""
    assert is_size(value) is expected


def test_an_empty_text_is_none() -> None:
    """A name or a time has at least one character."""
    with pytest.raises(PolicyError, match="a is '', expected a text"):
        Fields({"a": ""}, "f.json").text("a")


def test_long_values_are_cut() -> None:
    """An error stays one line of some length, whatever the file holds."""
    assert len(shown("x" * 1000)) == 40
