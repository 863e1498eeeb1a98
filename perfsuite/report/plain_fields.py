"""Fields of a record as JSON values, under their own names."""

from __future__ import annotations

from typing import Any


def plain_fields(record: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of a record; those that are records themselves are for the caller."""
    return {name: getattr(record, name) for name in names}
