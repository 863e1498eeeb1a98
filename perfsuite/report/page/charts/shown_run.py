"""Runs beside each other: their order and their names."""

from __future__ import annotations

from datetime import datetime, timezone

from perfsuite.records.moments import moment_of
from perfsuite.report.run_file import RunFile

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


def in_order_of_time(runs: list[RunFile]) -> list[RunFile]:
    """Return runs by the time at which they began, the oldest first; what cannot be read as a time comes last."""
    return sorted(runs, key=lambda run: (moment_of(run.started_at) or _NEVER, run.started_at))


def run_label(run: RunFile) -> str:
    """Name a run shortly, by month, day and time."""
    return run.started_at[5:16].replace("T", " ")
