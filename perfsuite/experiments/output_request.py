"""What a run writes beside its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRequest:
    """What was asked for."""

    writes_report: bool = True
    #: The folder to which the run is appended; None where it is not.
    history_dir: Path | None = None
