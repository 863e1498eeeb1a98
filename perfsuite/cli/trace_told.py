"""Where a recording goes, and what is told of it once it is there."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.report.trace_summary import TraceSummary, summarize_trace, summary_lines
from perfsuite.trace.recording import new_folder

_HOME = Path(".perfsuite") / "traces"


def recording_folder(named: str | None) -> Path:
    """Make the folder that the user named, or one of its own for each recording.

    Raises
    ------
    MeasurementError
        It cannot be made, or holds a recording already.
    """
    if named is not None:
        return new_folder(Path(named))
    return new_folder(_HOME / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}")


def tell(options: argparse.Namespace, trace: EngineTrace, folder: Path) -> None:
    """Say what a recording holds and how to look at it."""
    summary = summarize_trace(trace)
    if options.json:
        print(json.dumps(_plain(summary, folder), indent=1))
        return
    for line in summary_lines(summary):
        print(line)
    print(f"look at it: perfsuite trace view statistics {shlex.quote(str(folder))} (or graph, or timeline)")


def _plain(summary: TraceSummary, folder: Path) -> dict[str, Any]:
    return {"folder": str(folder), **summary.to_plain()}
