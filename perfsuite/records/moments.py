"""Times of ISO 8601, as runs write when they began."""

from __future__ import annotations

import re
from datetime import datetime, timezone

#: A date and a time to the minute or finer; Python 3.10 reads by itself neither ``Z`` nor any number of digits.
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?",
    re.ASCII,
)


def moment_of(text: str) -> datetime | None:
    """Return the moment in UTC; None where the text is no such time, or one before the year 1 or after 9999.

    A time without a zone is UTC. What is finer than a microsecond is cut.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    fraction = (found["fraction"] or "")[:6].ljust(6, "0")
    zone = found["zone"] or "Z"
    offset = "+00:00" if zone in "Zz" else f"{zone[:3]}:{zone[-2:]}"
    try:
        moment = datetime.fromisoformat(
            f"{found['day']}T{found['minute']}:{found['second'] or '00'}.{fraction}{offset}"
        )
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
