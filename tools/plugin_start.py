#!/usr/bin/env python3
"""Measures what the plugin adds to pytest's start in a project that does not use it, in interleaved pairs.

    tools/plugin_start.py [PAIRS]    # default 20

Each pair collects one empty test with the plugin and without it (``-p no:perfsuite``), in turn. Printed are the median
of the differences with its 95 % interval (bootstrap), in ms, of the time and of the processors' time, which neighbours
move less, and the difference of the largest resident sizes.
"""

from __future__ import annotations

import resource
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


def start(folder: Path, options: tuple[str, ...]) -> tuple[float, float, float]:
    """Return the time of one start and that of the processors, ms, and the largest resident size, MB."""
    began_ns, used_s = time.perf_counter_ns(), _children_s()
    started = subprocess.run([sys.executable, "-c", _START, *options, str(folder)], stdout=subprocess.PIPE, cwd=folder)
    took_ns = time.perf_counter_ns() - began_ns
    if started.returncode:
        sys.exit(f"pytest ended with status {started.returncode}: {started.stdout.decode()}")
    return took_ns / 1e6, (_children_s() - used_s) * 1e3, int(started.stdout.split()[-1]) / 1024


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(n_pairs: int) -> None:
    """Print what the plugin adds."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
        start(folder, ())
        differences = []
        for index in range(n_pairs):
            sides = {options: start(folder, options) for options in ((), _WITHOUT)[:: 1 if index % 2 else -1]}
            differences.append([one - other for one, other in zip(sides[()], sides[_WITHOUT], strict=True)])
    columns = zip(("start, ms", "processors, ms", "resident, MB"), zip(*differences, strict=True), strict=True)
    for what, values in columns:
        bounds = bootstrap((values,), median).confidence_interval
        print(f"{what}: {median(values):+.2f} ({bounds.low:+.2f} to {bounds.high:+.2f}), {n_pairs} pairs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
