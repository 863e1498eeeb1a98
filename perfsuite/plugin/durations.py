"""Times as options take them."""

from __future__ import annotations

import pytest

from perfsuite.device.waits import length_s


def asked_seconds(name: str, text: str) -> float:
    """Return the seconds that an option asks for; text that is no time is a `pytest.UsageError`."""
    asked_s = length_s(text)
    if not asked_s:
        raise pytest.UsageError(f"{name}={text}: expected a time such as 120s, 5m or 1h")
    return asked_s
