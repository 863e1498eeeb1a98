"""Times the HTML report of a made-up run with everything in it, and prints seconds and bytes as JSON."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from perfsuite.records.observation import write_observation
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

_LIMIT_S = 300


def main() -> None:
    """Make the run, report it several times, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500, metavar="N", help="cases of the run (default 500)")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="reports of which the median counts (5)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where the report is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder)
        run = synthetic_run(n_cases=options.cases)
        write_run(run, run_dir)
        write_observation(synthetic_observation(run), run_dir)
        page = options.keep or run_dir / "report.html"
        seconds = [_whole_s(run_dir, page) for _ in range(options.repeats)]
        peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        told = {
            "cases": len(run.judgements),
            "repeats": options.repeats,
            "whole_s": round(median(seconds), 3),
            "rendering_s": round(median(_rendering_s(run_dir, page) for _ in range(options.repeats)), 3),
            "size_bytes": page.stat().st_size,
            "peak_rss_bytes": peak_bytes,
        }
    print(json.dumps(told, indent=1))


def _whole_s(run_dir: Path, page: Path) -> float:
    """Return how long the command takes, the start of the interpreter included."""
    command = [sys.executable, "-m", "perfsuite.cli", "report", str(run_dir), "-o", str(page)]
    began_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_LIMIT_S)
    return time.perf_counter() - began_s


def _rendering_s(run_dir: Path, page: Path) -> float:
    """Return how long the page takes to render and to write, once the run is read."""
    from perfsuite.report.page.page_run import read_page_run
    from perfsuite.report.page.render import write_page

    page_run = read_page_run(run_dir)
    began_s = time.perf_counter()
    write_page([page_run], page)
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
