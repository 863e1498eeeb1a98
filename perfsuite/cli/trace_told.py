"""Where a recording goes, and what is told of it once it is there."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.report.trace_summary import TraceSummary, summarize_trace, summary_lines
from perfsuite.trace.recording import new_folder

#: Raised whenever a key of the JSON changes its meaning.
_SCHEMA = 1

_HOME = Path(".perfsuite") / "traces"


@contextmanager
def recording_folder(named: str | None) -> Iterator[Path]:
    """Make the folder that the user named, or one of its own for each recording; one that stays empty goes away.

    Raises
    ------
    MeasurementError
        It cannot be made, or holds a recording already.
    """
    folder = new_folder(Path(named) if named is not None else _HOME / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}")
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()  # refuses one that holds anything


def tell(options: argparse.Namespace, trace: EngineTrace, folder: Path) -> None:
    """Say what a recording holds and how to look at it."""
    summary = summarize_trace(trace)
    if options.json:
        print(json.dumps(_plain(summary, folder), indent=1))
        return
    for line in summary_lines(summary):
        print(line)
    if not options.quiet:
        print(f"look at it: perfsuite trace view statistics {shlex.quote(str(folder))} (or graph, or timeline)")


def _plain(summary: TraceSummary, folder: Path) -> dict[str, Any]:
    return {"schema": _SCHEMA, "folder": str(folder), **summary.to_plain()}
