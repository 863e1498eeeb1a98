"""Lengths of time as people write them: ``90s``, ``30m``, ``1.5h``."""

from __future__ import annotations

import re

#: Longest wait for a board of a farm where nothing else is said.
DEFAULT_FARM_WAIT = "1h"

_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)", re.ASCII)

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def length_s(text: str) -> float | None:
    """Return the seconds that a text means, without a unit as well; None where it is no length of time."""
    match = _LENGTH.fullmatch(text)
    return None if match is None else float(match[1]) * _UNITS_S[match[2]]
