"""Holds the native worker's runner of OpenCL kernels against the one in Python: in pairs of fresh processes.

    python tools/kernel_pairs.py --pairs 12 --json kernel-pairs.json

A pair is two processes of the same plan on this machine, one after the other, in an order that is drawn: the native
worker launches the kernels, or pyopencl does. What counts of each process is what the suite takes of it, the midmean of
END - START of a kernel's launches. A ratio is native over Python; its interval is that of the signed-rank test over the
pairs, of each kernel by itself. Programs are built once a side, in a process that does not count. --null lets Python
take both sides: what differs then is how well this machine can tell.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from perfsuite.device.threads import default_threads
from perfsuite.errors import MeasurementError, OpenClError, PerfsuiteError
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.launch import run_worker
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.plan import KernelPlan
from perfsuite.trace.samples import midmean
from perfsuite.units import format_ns
from perfsuite.verdict.signed_rank import compare_pairs
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

#: One of each kernel, of the shorter ones: 20 launches of all take less than a second.
_USUAL = (
    "kernel/gemm/m192-n128-k576/f16",
    "kernel/gemv_f16/m1536-k576/f16",
    "kernel/gemv_q8_0/m2048-k2048/q8_0",
    "kernel/gemv_q4_0/m8192-k2048/q4_0",
    "kernel/bmm_kq/heads32-kvheads8-tokens1-positions1024-head64/f16",
    "kernel/bmm_kqv/heads9-kvheads3-tokens64-positions64-head64/f16",
    "kernel/rms_norm/rows128-columns2048/f32",
    "kernel/rope_neox/tokens512-heads9-head64/f32",
    "kernel/softmax/rows576-columns512/f32",
    "kernel/silu_mul/count98304/f32",
    "kernel/add/count147456/f32",
    "kernel/dequantize_q4_0/count884736/q4_0",
)

#: What others may have of the processors before figures are those of a busy machine.
_MOST_OTHERS_RATIO = 0.05

#: Runs one process; returns its payload.
Side = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one process has measured."""

    #: By case.
    times_ns: Mapping[str, int]
    others_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One kernel on both sides; every ratio is native over Python."""

    case_id: str
    python_ns: int
    native_ns: int
    ratio: float
    #: Two-sided; None where the pairs are too few.
    lower_ratio: float | None
    upper_ratio: float | None
    n_pairs: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pairs and print what they say; return the exit code."""
    options = parsed(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="perfsuite-kernel-pairs-") as folder:
            pairs = measured(sides(options, Path(folder)), drawn_orders(options.pairs, random.Random(options.seed)))
        found = differences(pairs, options.alpha)
    except PerfsuiteError as error:
        print(f"{Path(__file__).name}: error: {error}", file=sys.stderr)
        return 2
    if options.json is not None:
        told = {"alpha": options.alpha, "kernels": [asdict(each) for each in found]}
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    print(table(found))
    print(neighbours(pairs))
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--kernels", metavar="TEXT", help="those whose case id has TEXT in it (default: one of each)")
    parser.add_argument("--platform", metavar="TEXT", help="of OpenCL, by a part of its name")
    parser.add_argument("--repetitions", type=int, default=20, help="launches of each kernel in each process")
    parser.add_argument("--alpha", type=float, default=0.05, help="an interval holds the truth with 1 - ALPHA")
    parser.add_argument("--null", action="store_true", help="let Python take both sides")
    parser.add_argument("--seed", type=int, help="of the order (default: another one each time)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same as JSON")
    options = parser.parse_args(arguments)
    if min(options.pairs, options.repetitions) < 1 or not 0 < options.alpha < 1:
        parser.error(
            f"--pairs={options.pairs} --repetitions={options.repetitions} --alpha={options.alpha}: "
            "expected one or more of each, and 0 < ALPHA < 1"
        )
    return options


def sides(options: argparse.Namespace, folder: Path) -> tuple[Side, Side]:
    """Return what runs a process by Python, and one by the native worker, each after one that has built its programs.

    Raises
    ------
    OpenClError
        No kernel has such a name.
    """
    wanted = [case.case_id for case in STANDARD_KERNELS]
    case_ids = tuple(each for each in wanted if each in _USUAL) if options.kernels is None else ()
    case_ids = case_ids or tuple(each for each in wanted if options.kernels in each)
    if not case_ids:
        raise OpenClError(f"--kernels={options.kernels}: is in no case id; they are like {_USUAL[0]}")
    plan = KernelPlan(
        case_ids=case_ids,
        platform=options.platform,
        n_repetitions=options.repetitions,
        seed=0,
        log_dir=str(folder),
        cache_dir=str(folder),
        n_threads=default_threads(),
    )
    run = partial(run_worker, extra_environment=opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS")))
    own = OwnKernels(read_there=Path.read_bytes, log_dir=folder, cache_dir=str(folder))
    own_plans = [replace(plan, built_dir=str(folder / name)) for name in ("python", "native")]
    for each in own_plans:
        Path(str(each.built_dir)).mkdir()
    both: tuple[Side, Side] = (partial(run, own_plans[0]), partial(own.run, own_plans[1], run))
    if options.null:
        both = (both[0], partial(run, own_plans[1]))
    for side in both:
        side()
    return both


def drawn_orders(n_pairs: int, chance: random.Random) -> list[bool]:
    """Draw of which pairs the native worker is first: of half of them, so that neither side gains by what drifts."""
    orders = [number % 2 == 0 for number in range(n_pairs)]
    chance.shuffle(orders)
    return orders


def measured(both: tuple[Side, Side], orders: Sequence[bool]) -> list[tuple[Sample, Sample]]:
    """Run the pairs; return what Python and what the native worker has measured in each."""
    pairs = []
    for number, native_first in enumerate(orders):
        found = {place: sample_of(both[place]()) for place in ((1, 0) if native_first else (0, 1))}
        pairs.append((found[0], found[1]))
        print(f"pair {number + 1} of {len(orders)} is done", file=sys.stderr, flush=True)
    return pairs


def sample_of(payload: Mapping[str, Any]) -> Sample:
    """Return what counts of a process.

    Raises
    ------
    MeasurementError
        A kernel computes wrongly, or none of its launches has times that can be right.
    """
    records = [KernelRecord.from_plain(each) for each in payload["kernels"]]
    for each in records:
        if not each.durations_ns:
            raise MeasurementError(
                f"{each.case_id}: error norm {each.error_norm:.2g} (tolerance {each.tolerance:.2g}), and none of "
                f"{len(each.end_ns)} launches has times that can be right"
            )
    times_ns = {each.case_id: round(midmean(each.durations_ns)) for each in records}
    return Sample(times_ns=times_ns, others_ratio=payload["contention"]["others_ratio"] or 0.0)


def differences(pairs: Sequence[tuple[Sample, Sample]], alpha: float) -> list[Difference]:
    """Compare the sides kernel by kernel; each bound has half of `alpha`."""
    return [difference(case_id, pairs, alpha) for case_id in pairs[0][0].times_ns]


def difference(case_id: str, pairs: Sequence[tuple[Sample, Sample]], alpha: float) -> Difference:
    """Compare one kernel."""
    python_ns, native_ns = ([pair[side].times_ns[case_id] for pair in pairs] for side in (0, 1))
    change = compare_pairs(python_ns, native_ns, alpha=alpha / 2)
    return Difference(
        case_id=case_id,
        python_ns=round(median(python_ns)),
        native_ns=round(median(native_ns)),
        ratio=change.estimate_ratio,
        lower_ratio=change.lower_ratio or None,
        upper_ratio=None if math.isinf(change.upper_ratio) else change.upper_ratio,
        n_pairs=change.n_pairs,
    )


def table(found: Sequence[Difference]) -> str:
    """Return a line for each kernel."""
    rows = [("kernel", "Python", "native", "native/Python", "interval"), *map(row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, each, widths)).rstrip() for each in rows)


def row(each: Difference) -> tuple[str, ...]:
    """Return the cells of one kernel."""
    interval = f"too few pairs ({each.n_pairs})"
    if each.lower_ratio is not None and each.upper_ratio is not None:
        interval = f"{each.lower_ratio:.4f} to {each.upper_ratio:.4f} ({each.n_pairs} pairs)"
    times = (format_ns(each.python_ns), format_ns(each.native_ns))
    return (each.case_id.removeprefix("kernel/"), *times, f"{each.ratio:.4f}", interval)


def neighbours(pairs: Sequence[tuple[Sample, Sample]]) -> str:
    """Say how much others had of the processors, and whether that was too much."""
    others_ratio = median(sample.others_ratio for pair in pairs for sample in pair)
    told = f"others had {100 * others_ratio:.1f} % of the processors (median process)"
    return told if others_ratio <= _MOST_OTHERS_RATIO else f"{told}: these figures are of a busy machine, measure again"


if __name__ == "__main__":
    sys.exit(main())
