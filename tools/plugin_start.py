#!/usr/bin/env python3
"""Measures what the plugin adds to pytest's start in a project that does not use it, in interleaved pairs.

    tools/plugin_start.py [PAIRS]    # default 20

Each pair collects one empty test with the plugin and without it (``-p no:perfsuite``), in turns. Printed are the median
of the differences with its 95 % interval (bootstrap), in ms, and the difference of the largest resident sizes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from scipy.stats import bootstrap

_WITHOUT = ("-p", "no:perfsuite")

#: A process's own largest size, kB: that of `os.wait4` begins with the size of the process that started it.
_START = """
import sys, pytest
status = pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", *sys.argv[1:]])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(status)
"""


def start(folder: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Return the time of one start, ms, and the largest resident size, MB."""
    began_ns = time.perf_counter_ns()
    started = subprocess.run([sys.executable, "-c", _START, *options, str(folder)], stdout=subprocess.PIPE, cwd=folder)
    took_ns = time.perf_counter_ns() - began_ns
    if started.returncode:
        sys.exit(f"pytest ended with status {started.returncode}: {started.stdout.decode()}")
    return took_ns / 1e6, int(started.stdout.split()[-1]) / 1024


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
