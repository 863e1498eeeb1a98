"""Times of ISO 8601."""

from __future__ import annotations

import pytest

from perfsuite.records.run_file import moment_of


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T02:00:59.123+00:00", "2026-03-01T02:00:59.123000+00:00"),
        ("2026-03-01T02:00:59.1234567Z", "2026-03-01T02:00:59.123456+00:00"),
        ("2026-03-01T02:00:00+02:00", "2026-03-01T00:00:00+00:00"),
        ("2026-03-01T02:00:00-0130", "2026-03-01T03:30:00+00:00"),
        ("2026-03-01 02:00", "2026-03-01T02:00:00+00:00"),
        ("2026-03-01T02:00:00", "2026-03-01T02:00:00+00:00"),
    ],
)
def test_a_time_is_a_moment_in_utc(text: str, moment: str) -> None:
    """A zone is reckoned in, one that is not reported is UTC, and digits beyond a microsecond are cut."""
    found = moment_of(text)
    assert found is not None
    assert found.isoformat() == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-01",
        "2026-02-30T02:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "٢٠٢٦-03-01T02:00:00Z",
        "2026-03-01T02:00:00Z\n",
    ],
)
def test_what_is_no_time_is_no_moment(text: str) -> None:
    """Days that there are not, forms that not every Python reads, and times outside the calendar are None."""
    assert moment_of(text) is None
