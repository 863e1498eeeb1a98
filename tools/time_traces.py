"""Times what docs/results.md states of traces: a million events written, read, and turned into the three views."""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from perfsuite.experiments.engine_graph import traced_cost
from perfsuite.records.trace_file import read_trace, write_trace
from perfsuite.report.graph.picture import graph_svg
from perfsuite.report.graph.view import graph_view
from perfsuite.report.statistics.tables import plain_statistics
from perfsuite.report.timeline.perfetto import write_perfetto
from perfsuite.report.timeline.summary import timeline_summary
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.statistics.statistics_view import trace_statistics

T = TypeVar("T")


def told(what: str, work: Callable[[], T]) -> T:
    """Do it, and print how long it took."""
    began_s = time.perf_counter()
    done = work()
    print(f"{what:22s} {time.perf_counter() - began_s:6.2f} s")
    return done


def main() -> None:
    """Make the events, and time everything behind that."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, metavar="N", help="default a million")
    options = parser.parse_args()
    made = large_trace(options.events)
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.pstrace"
        told("written", lambda: write_trace(path, made))
        n_bytes = path.stat().st_size
        trace = told("read", lambda: read_trace(path))
        told("graph, as SVG", lambda: graph_svg([graph_view(trace)]))
        told("timeline, Perfetto", lambda: write_perfetto(trace, Path(folder) / "timeline.pftrace"))
        told("timeline, summary", lambda: timeline_summary(trace))
        told("statistics", lambda: plain_statistics(trace_statistics(trace, traced_cost)))
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{trace.events.size} events, file of {n_bytes / 1e6:.0f} MB")
    print(f"together {time.perf_counter() - began_s:.2f} s, at most {peak_bytes / 1e6:.0f} MB resident")


if __name__ == "__main__":
    main()
