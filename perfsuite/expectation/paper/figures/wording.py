"""Numbers in the titles of the figures."""

from __future__ import annotations


def percent(ratio: float, digits: int = 0) -> str:
    """Write a ratio as a percentage."""
    return f"{100.0 * ratio:.{digits}f} %"
