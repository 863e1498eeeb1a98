"""Values as options take them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perfsuite.device.farm.request import length_s
from perfsuite.errors import meant


def asked_seconds(name: str, text: str) -> float:
    """Return the seconds that an option asks for; text that is no time is a `pytest.UsageError`."""
    asked_s = length_s(text)
    if not asked_s:
        raise pytest.UsageError(f"{name}={text}: expected a time such as 120s, 5m or 1h")
    return asked_s


def asked_names(name: str, text: str, known: Sequence[str], *, has_all: bool = True) -> tuple[str, ...]:
    """Return the names of a list, or all that are known for ``all``; an unknown one is a `pytest.UsageError`."""
    accepted = (*known, "all") if has_all else tuple(known)
    names = tuple(dict.fromkeys(text.replace(" ", "").split(",")))
    if unknown := [each for each in names if each not in accepted]:
        raise pytest.UsageError(
            f"{name}={text}: {unknown[0]!r} is unknown; accepted are {', '.join(accepted)}{meant(unknown[0], accepted)}"
        )
    return tuple(known) if has_all and "all" in names else names
