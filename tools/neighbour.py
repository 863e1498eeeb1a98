#!/usr/bin/env python3
"""Disturbs a measurement beside which it runs, until it is ended: one neighbour of several kinds.

    .venv/bin/python tools/neighbour.py steady
    .venv/bin/python tools/neighbour.py in-phase --side=/path/to/new/lib

`steady` keeps one processor busy, `bursts` a second of every three, `install` makes an environment of Python's and
installs into it, for `--seconds`. The others disturb one side of pairs alone: the worker that has a library below
`--side` open. `in-phase` is busy for a tenth of a second from the moment that its turn begins, `bound` on its own
processor for as long as it runs, and `quota` gives it half a processor (cgroup v1 or v2, root).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

#: How often the side's worker is looked at, and how long one burst lasts, s.
LOOK_S, BURST_S = 0.002, 0.1
_WORKER = "perfsuite-worker"


def burn(until_s: float) -> None:
    """Keep a processor busy."""
    while time.monotonic() < until_s:
        pass


def workers(side: str) -> Iterator[psutil.Process]:
    """Yield the workers of the side."""
    for each in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error, OSError):
            if each.info["name"].startswith(_WORKER[:15]) and side in Path(f"/proc/{each.pid}/maps").read_text():
                yield each


def while_it_runs(side: str, act: Callable[[psutil.Process], None]) -> None:
    """Act whenever the side's worker was on a processor since the last look."""
    spent_s: dict[int, float] = {}
    found: list[psutil.Process] = []
    looked_s = 0.0
    while True:
        if time.monotonic() - looked_s > 0.2:
            found, looked_s = list(workers(side)), time.monotonic()
        for each in found:
            with contextlib.suppress(psutil.Error):
                now_s = sum(each.cpu_times()[:2])
                if now_s > spent_s.get(each.pid, now_s):
                    act(each)
                spent_s[each.pid] = now_s
        time.sleep(LOOK_S)


def bound_to(process: psutil.Process) -> None:
    """Be busy for a moment where the process ran last."""
    psutil.Process().cpu_affinity([process.cpu_num()])
    burn(time.monotonic() + LOOK_S * 5)


def quota(side: str) -> None:
    """Let each worker of the side have half a processor."""
    is_old = Path("/sys/fs/cgroup/cpu").is_dir()
    group = Path("/sys/fs/cgroup/cpu" if is_old else "/sys/fs/cgroup") / f"neighbour-{os.getpid()}"
    group.mkdir()
    (group / ("cpu.cfs_quota_us" if is_old else "cpu.max")).write_text("50000" if is_old else "50000 100000")
    try:
        while True:
            for each in workers(side):
                with contextlib.suppress(OSError):
                    (group / "cgroup.procs").write_text(str(each.pid))
            time.sleep(LOOK_S)
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def install(seconds: float) -> None:
    """Install into new environments for so long."""
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            contextlib.suppress(subprocess.TimeoutExpired),
        ):
            make = f"{sys.executable} -m venv {folder}/env && {folder}/env/bin/pip install -q scipy networkx rich"
            subprocess.run(["sh", "-c", make], timeout=left_s, check=False, stderr=subprocess.DEVNULL)


def main() -> None:
    """Disturb until somebody ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("steady", "bursts", "install", "in-phase", "bound", "quota"))
    parser.add_argument("--side", default="", metavar="PATH", help="part of the path of the side's libraries")
    parser.add_argument("--seconds", type=float, default=30.0, metavar="S", help="of an installation (default 30)")
    options = parser.parse_args()
    if options.kind == "install":
        install(options.seconds)
    elif options.kind == "steady":
        burn(float("inf"))
    elif options.kind == "bursts":
        while True:
            burn(time.monotonic() + 1.0)
            time.sleep(2.0)
    elif options.kind == "quota":
        quota(options.side)
    else:
        bursts: Callable[[psutil.Process], None] = lambda _: burn(time.monotonic() + BURST_S)  # noqa: E731
        while_it_runs(options.side, bound_to if options.kind == "bound" else bursts)


def end(*_: object) -> None:
    """End as by Ctrl-C, which what runs in the background may ignore."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    with contextlib.suppress(KeyboardInterrupt):
        main()
