#!/usr/bin/env python3
"""Measures what the plugin adds to pytest's start in a project that does not use it, in interleaved pairs.

    tools/plugin_start.py [PAIRS]    # default 20

Each pair collects one empty test with the plugin and without it (``-p no:perfsuite``), in turns. Printed are the median
of the differences with its 95 % interval (bootstrap), in ms, and the difference of the largest resident sizes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from scipy.stats import bootstrap

_WITHOUT = ("-p", "no:perfsuite")


def start(folder: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Return the time of one start, ms, and the largest resident size, MB."""
    began_ns = time.perf_counter_ns()
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *options, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"pytest ended with status {status}")
    return (time.perf_counter_ns() - began_ns) / 1e6, usage.ru_maxrss / 1024


def main(n_pairs: int) -> None:
    """Print what the plugin adds."""
    differences_ms, differences_mb = [], []
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
        start(folder, ())
        for index in range(n_pairs):
            sides = {options: start(folder, options) for options in ((), _WITHOUT)[:: 1 if index % 2 else -1]}
            differences_ms.append(sides[()][0] - sides[_WITHOUT][0])
            differences_mb.append(sides[()][1] - sides[_WITHOUT][1])
    bounds = bootstrap((differences_ms,), median).confidence_interval
    print(f"start: {median(differences_ms):+.1f} ms ({bounds.low:+.1f} to {bounds.high:+.1f}), {n_pairs} pairs")
    print(f"largest resident size: {median(differences_mb):+.2f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
