#!/usr/bin/env python3
"""Certifies the hunts for shapes: a planted slow path is found and shrunk, and sound kernels raise nothing.

Each run is a fresh pytest process with a seed of its own, as a user would start it. With the fault, which slows the
tiled kernels down at k % 32 = 1, a run counts where it fails at the smallest such k that its bounds allow, within its
limit; without the fault, where it passes. A last run without the fault says how many distinct shapes a minute holds,
each of them compared with NumPy's.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scipy.stats import binomtest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.records.whole_file import write_json
from perfsuite.testing.planted_kernels import Fault, plant
from perfsuite.workload.shapes.shape_case import ShapeCase

#: What is hunted, in turn: from 2, so that the first thing that is tried has no fault, and from 1.
BLOCKS = (("gemm", 2), ("bmm", 2), ("gemm", 1), ("bmm", 1))
_MOST_K = 512
_PERIOD = 32
_CONFIDENCE = 0.95
#: Distinct shapes compared with NumPy's that a minute should hold.
_LEAST_A_MINUTE = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pytest process."""

    operation: str
    least_k: int
    seed: int
    is_planted: bool
    seconds: float
    #: pass, regressed, ...; None where the limit was reached or pytest broke off.
    outcome: str | None
    #: Shapes that were judged.
    n_shapes: int
    #: The shape that the hunt ended with.
    found: str | None
    reason: str

    @property
    def is_right(self) -> bool:
        """Whether the fault was found and shrunk to its smallest k, or nothing was raised where there is none."""
        if not self.is_planted:
            return self.outcome == "pass"
        if self.outcome != "regressed" or self.found is None:
            return False
        return ShapeCase.from_id(f"shape/tiled/{self.found}").shape.of("k") == smallest_k(self.least_k)


def smallest_k(least_k: int) -> int:
    """Return the smallest k of 1, 33, 65, ... that is not below the bound."""
    return least_k + (1 - least_k) % _PERIOD


def hunt(folder: Path, *, operation: str, least_k: int, seed: int, kernels: Path | None, limit_s: float) -> Run:
    """Hunt once in a fresh process."""
    bounds = f"--perf-shape-bounds=k={least_k}:{_MOST_K}"
    arguments = [f"--perf-shapes={operation}", "--perf-shape-types=f32", bounds, "-k", "shape-hunt and padding"]
    arguments += [] if kernels is None else [f"--perf-kernels={kernels}"]
    run_dir = folder / f"{operation}-{least_k}-{seed}-{'planted' if kernels else 'sound'}"
    seconds, cases = pytest_run(run_dir, seed=seed, arguments=arguments, limit_s=limit_s)
    case = cases[0] if cases else {}
    reason = str(case.get("reason", "no verdict within the limit"))
    shape = re.match(r"(\w+/[\w-]+/\w+/tile\d+-vector\d+): ", reason)
    shapes = re.search(r"(\d+) shapes", reason)
    return Run(
        operation=operation,
        least_k=least_k,
        seed=seed,
        is_planted=kernels is not None,
        seconds=round(seconds, 2),
        outcome=str(case["outcome"]) if case else None,
        n_shapes=int(shapes[1]) if shapes else 0,
        found=shape[1] if shape else None,
        reason=reason,
    )


def pytest_run(
    run_dir: Path, *, seed: int, arguments: Sequence[str], limit_s: float
) -> tuple[float, list[dict[str, object]]]:
    """Run pytest, and return what it took with the cases of its run.json; no cases where there is none."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--device=host", "--baseline=off"]
    command += ["--perf-shape-profile=quick", f"--perf-dir={run_dir}", f"--hypothesis-seed={seed}", *arguments]
    started_s = time.monotonic()
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, check=False, cwd=run_dir.parent
        )
    except subprocess.TimeoutExpired:
        return time.monotonic() - started_s, []
    seconds = time.monotonic() - started_s
    try:
        return seconds, list(json.loads((run_dir / "run.json").read_text("utf-8"))["cases"])
    except FileNotFoundError:
        raise SystemExit(f"shape_hunts: pytest wrote no run.json:\n{ended.stdout}{ended.stderr}") from None


def told(run: Run) -> str:
    """Tell a run in one line."""
    kernels = "planted" if run.is_planted else "sound  "
    found = run.found or ("nothing raised" if run.outcome == "pass" else run.reason)[:200]
    verdict = "ok" if run.is_right else "NOT AS IT SHOULD BE"
    where = f"{kernels} {run.operation} k>={run.least_k} seed {run.seed}"
    return f"{where}: {run.seconds:.1f} s, {run.n_shapes} shapes, {found}: {verdict}"


def bounds_told(n_right: int, n_runs: int) -> str:
    """Tell a count with the exact (Clopper and Pearson) interval of its chance."""
    if not n_runs:
        return "0 of 0"
    interval = binomtest(n_right, n_runs).proportion_ci(confidence_level=_CONFIDENCE, method="exact")
    return f"{n_right} of {n_runs} ({interval.low:.3f} to {interval.high:.3f} at {_CONFIDENCE:.0%})"


def hunts(folder: Path, options: argparse.Namespace) -> Iterator[Run]:
    """Run all hunts with the fault, then all without it."""
    for kernels in (plant(folder, Fault.SLOW_K), None):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            operation, least_k = BLOCKS[seed % len(BLOCKS)] if options.from_1 else BLOCKS[seed % 2]
            yield hunt(folder, operation=operation, least_k=least_k, seed=seed, kernels=kernels, limit_s=options.limit)


def verified_in_a_minute(folder: Path, seed: int) -> int:
    """Return how many distinct shapes the quick profile compares with NumPy's in its minute; 0 where a hunt fails."""
    arguments = ["--perf-shapes=gemm,bmm,gemv", "--perf-shape-types=f32", "-k", "shape-hunt and correct"]
    _, cases = pytest_run(folder / "minute", seed=seed, arguments=arguments, limit_s=300.0)
    if any(case["outcome"] != "pass" for case in cases):
        return 0
    shapes = (re.match(r"(\d+) shapes", str(case["reason"])) for case in cases)
    return sum(int(match[1]) for match in shapes if match)


def main() -> int:
    """Run the hunts, tell each, and write them down; 1 where too few were right."""
    options = parsed()
    with tempfile.TemporaryDirectory(prefix="shape-hunts-") as name:
        folder = Path(name)
        runs: list[Run] = []
        try:
            for run in hunts(folder, options):
                print(told(run), flush=True)
                runs.append(run)
        except OpenClError as error:
            raise SystemExit(f"shape_hunts: {error}") from None
        n_verified = None if options.no_minute else verified_in_a_minute(folder, options.first_seed)
    planted, sound = ([run for run in runs if run.is_planted is wanted] for wanted in (True, False))
    n_found, n_quiet = (sum(run.is_right for run in block) for block in (planted, sound))
    print(f"planted: found and shrunk to the smallest k {bounds_told(n_found, len(planted))}")
    print(f"sound:   nothing raised {bounds_told(n_quiet, len(sound))}")
    if n_verified is not None:
        print(f"distinct shapes compared with NumPy's in a minute: {n_verified}")
    if options.out:
        plain = {"n_found": n_found, "n_quiet": n_quiet, "n_verified_in_60_s": n_verified}
        told_runs = [{**asdict(run), "is_right": run.is_right} for run in runs]
        write_json(options.out, {**plain, "runs": told_runs}, MeasurementError)
    is_fast = n_verified is None or n_verified >= _LEAST_A_MINUTE
    return 0 if n_found >= 0.95 * len(planted) and n_quiet == len(sound) and is_fast else 1


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="runs with the fault, and without (20)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="the first of them (0)")
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="longest that one may take (120)")
    parser.add_argument("--from-1", action="store_true", help="let every other pair of runs draw k from 1, not 2")
    parser.add_argument("--no-minute", action="store_true", help="do not count shapes in a minute")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the runs as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
