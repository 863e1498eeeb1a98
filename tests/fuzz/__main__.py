"""``python -m tests.fuzz``: reads changed files with every reader, and keeps those that one does not stand.

    python -m tests.fuzz --seconds 120
    python -m tests.fuzz --reader gguf --executions 1000000
    python -m tests.fuzz --reader gguf FILE ...

It prints how many were read by reader, and ends with 1 where something was found; the files are in the folder that is
named then. If you have repaired the reader, move them to ``tests/fuzz/corpus/READER/``, where a test reads them again.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

from .executions import Finding, fuzzed, replayed
from .readers import READERS

#: Files that are read between two looks at the clock.
_AT_ONCE = 64


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="one reader; may be repeated")
    parser.add_argument("--seconds", type=float, help="for all readers together, 60 where nothing is said")
    parser.add_argument("--executions", type=int, help="files a reader")
    parser.add_argument("--seed", type=int, help="what is drawn; the time where nothing is said")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"), help="a folder for what is found")
    parser.add_argument("files", nargs="*", type=Path, help="read these with the reader, and no others")
    options = parser.parse_args()
    names = options.reader or list(READERS)
    if options.files:
        found = [each for name in names for path in options.files if (each := replayed(name, path.read_bytes()))]
        for each in found:
            print(f"{each.reader}: {each.what}\n{each.details}")
        return bool(found)
    return _fuzz(names, options)


def _fuzz(names: list[str], options: argparse.Namespace) -> int:
    seconds = 60.0 if options.seconds is None and options.executions is None else options.seconds
    seed = options.seed if options.seed is not None else time.time_ns() % 10**12
    print(f"seed {seed}")
    n_found, left = 0, len(names)
    end_s = None if seconds is None else time.monotonic() + seconds
    for name in names:
        began_s = time.monotonic()
        stop_s = None if end_s is None else began_s + max(end_s - began_s, 0.0) / left

        def until(n_read: int, stop_s: float | None = stop_s) -> bool:
            if options.executions is not None and n_read >= options.executions:
                return True
            return stop_s is not None and n_read % _AT_ONCE == 0 and time.monotonic() >= stop_s

        n_read, found = fuzzed(name, seed=seed, until=until)
        left -= 1
        rate = n_read / max(time.monotonic() - began_s, 1e-9)
        print(f"{name:<20} {n_read:>10,} files  {rate:>8,.0f}/s  {len(found)} found", flush=True)
        for each in found:
            print(f"  {_kept(each, options.output)}: {each.what:.300}", flush=True)
        n_found += len(found)
    return min(n_found, 1)


def _kept(finding: Finding, folder: Path) -> Path:
    path = folder / finding.reader / hashlib.sha256(finding.content).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(finding.content)
    Path(f"{path}.txt").write_text(f"{finding.what}\n\n{finding.details}", "utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
