"""Where a recording goes, and what is printed about it then."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.records.engine_trace import EngineTrace
from perfsuite.report.trace_summary import summarize_trace, summary_lines
from perfsuite.trace.recording import new_folder

#: Raised whenever a key of the JSON changes its meaning.
_SCHEMA = 1

_HOME = Path(".perfsuite") / "traces"


@contextmanager
def recording_folder(named: str | None) -> Iterator[Path]:
    """Make the folder that the user named, or one of its own for each recording; one that stays empty goes away.

    Raises `MeasurementError`: it cannot be made, or holds a recording already.
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
    hint = f"look at it: perfsuite trace view statistics {shlex.quote(str(folder))} (or graph, or timeline)"
    answer = Answer(
        parts=lambda: [*summary_lines(summary), *([] if options.quiet else [hint])],
        plain=lambda: {"schema": _SCHEMA, "folder": str(folder), **summary.to_plain()},
    )
    give(answer, options)
