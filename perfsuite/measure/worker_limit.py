"""How long a worker may take: so many times what its work is forecast to take, or a fixed time without a forecast."""

from __future__ import annotations

#: Longest that work without a forecast may take: OpenCL compiles for tens of seconds, and emulators are slow.
WORKER_LIMIT_S = 600.0

#: With a forecast: so many times that, and at least so long, for a process that starts and reads its model.
FORECAST_RATIO, LEAST_LIMIT_S = 20.0, 30.0


def forecast_limit_s(forecast_s: float | None) -> float:
    """Return the longest that a worker may take whose work is forecast; None is no forecast."""
    return WORKER_LIMIT_S if not forecast_s else max(LEAST_LIMIT_S, FORECAST_RATIO * forecast_s)


def limit_text(limit_s: float) -> str:
    """Say where a limit comes from, for messages."""
    if limit_s == WORKER_LIMIT_S or limit_s < LEAST_LIMIT_S:
        return f"its limit is {limit_s:.0f} s"
    return f"its limit is {limit_s:.0f} s, {FORECAST_RATIO:g} times its forecast and at least {LEAST_LIMIT_S:g} s"
