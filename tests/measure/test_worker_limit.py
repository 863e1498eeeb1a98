"""How long a worker may take."""

from __future__ import annotations

import pytest

from perfsuite.measure.worker_limit import forecast_limit_s, limit_text


@pytest.mark.parametrize(
    ("forecast_s", "limit_s"), [(None, 600.0), (0.0, 600.0), (0.1, 30.0), (1.5, 30.0), (60.0, 1200.0)]
)
def test_a_limit_follows_the_forecast(forecast_s: float | None, limit_s: float) -> None:
    assert forecast_limit_s(forecast_s) == limit_s


def test_a_limit_says_where_it_comes_from() -> None:
    assert limit_text(forecast_limit_s(2.0)) == "its limit is 40 s, 20 times its forecast and at least 30 s"
    assert limit_text(forecast_limit_s(None)) == "its limit is 600 s"
