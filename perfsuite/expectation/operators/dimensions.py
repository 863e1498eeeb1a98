"""Refusal of dimensions that no operator can have, in one wording: field, value, what is accepted."""

from __future__ import annotations

from typing import NoReturn

from perfsuite.errors import ArchitectureError


def check_positive(**dimensions: int) -> None:
    """Raise ArchitectureError for the first dimension that is not an integer of 1 or more."""
    for field, value in dimensions.items():
        if not _is_integer(value) or value < 1:
            _refuse(field, value, "a positive integer")


def check_count(**counts: int) -> None:
    """Raise ArchitectureError for the first count that is not an integer of 0 or more."""
    for field, value in counts.items():
        if not _is_integer(value) or value < 0:
            _refuse(field, value, "an integer of 0 or more")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(field: str, value: object, accepted: str) -> NoReturn:
    raise ArchitectureError(f"{field} is {value!r}, expected {accepted}")
