"""The errors that a user can meet."""

from __future__ import annotations

import pytest

from perfsuite.errors import alike, meant


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("reprot", ("report", "export"), "; did you mean report?"),
        ("HOST", ("host", "rubikpi"), "; did you mean host?"),
        ("xyz", ("report", "export"), ""),
        ("xyz", (), ""),
    ],
)
def test_the_nearest_name_is_offered(name: str, known: tuple[str, ...], told: str) -> None:
    """In either case of letters; nothing is offered where nothing is like it."""
    assert meant(name, known) == told


def test_several_names_are_offered_where_that_is_asked_for() -> None:
    known = ("smollm2-135m", "smollm2-360m", "llama-3.2-1b")
    assert meant("smolm2-135m", known, most=2) == "; did you mean smollm2-135m or smollm2-360m?"
    assert alike("smolm2-135m", known) == ["smollm2-135m"]
    assert alike("smol", known, least_ratio=0.9) == []
