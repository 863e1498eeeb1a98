"""Statements about a roofline."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from perfsuite.verdict.statement import Statement


def test_a_statement_is_not_changed_afterwards() -> None:
    """What was found stays, undecided included, which is neither true nor false."""
    statement = Statement(name="depth-rises", claim="P rises", holds=None, evidence="within the spread")
    assert statement.holds is None
    with pytest.raises(FrozenInstanceError):
        statement.holds = True  # type: ignore[misc]
