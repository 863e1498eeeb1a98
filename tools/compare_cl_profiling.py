"""Tells whether the OpenCL layer saw the kernels that llama.cpp's backend timed itself.

    python tools/compare_cl_profiling.py cl_profiling.csv opencl-1234.log --untimed kernel_convert_block_q8_0

A backend built with GGML_OPENCL_PROFILING writes cl_profiling.csv into its working directory, one line for each launch
in the order of the enqueue calls. The log is that of the same process. Compared are the kernels' order, names, counts
and sizes of the launches, and the total of END - START. Kernels that the backend launches without timing them, as those
that convert weights while a model is loaded, are named by --untimed. The exit code is 1 where something differs.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.opencl_commands import CommandFlag, CommandType, OpenClTrace
from perfsuite.records.opencl_log_file import read_opencl_log

#: The columns of the file, by their names in its first line.
_KERNEL, _DURATION, _GLOBAL, _LOCAL = "kernel name", "exec duration (ms)", "global size", "local size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch of a kernel, as either side saw it."""

    name: str
    duration_ns: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The layer's launches against the backend's."""

    n_engine: int
    n_layer: int
    #: Launches by name, the backend's and the layer's, where they are not the same number.
    counts_that_differ: dict[str, tuple[int, int]]
    #: Launches that the backend does not time, by name.
    untimed: dict[str, int]
    #: Position of the first launch whose kernel or sizes are not the same; `None` where all are.
    first_difference: int | None
    #: The layer's total time of the kernels that both saw, over the backend's; NaN where the backend's is 0.
    duration_ratio: float

    def agrees(self, within: float) -> bool:
        """Tell whether all launches are the same and their total differs by no more than `within` of it."""
        is_same = not self.counts_that_differ and self.first_difference is None
        return is_same and self.n_engine > 0 and abs(self.duration_ratio - 1) <= within


def read_profiling(path: Path) -> tuple[Launch, ...]:
    """Read what the backend wrote; `MeasurementError` where it is no such file."""
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            return tuple(_launch(row) for row in csv.DictReader(lines, skipinitialspace=True))
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from None
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise MeasurementError(f"{path}: not a cl_profiling.csv of llama.cpp ({error})") from None


def traced_launches(trace: OpenClTrace) -> tuple[Launch, ...]:
    """Return the launches that the layer recorded; `MeasurementError` where it lost some or has no times."""
    kernels = trace.commands[trace.commands["type"] == CommandType.KERNEL]
    if not trace.is_complete:
        raise MeasurementError(f"the log is not whole: {trace.n_lost} commands lost, {trace.n_unfinished} unfinished")
    if (kernels["flags"] & CommandFlag.NO_PROFILE).any():
        raise MeasurementError("the log has kernels without times")
    return tuple(
        Launch(
            name=trace.names[each["name"]],
            duration_ns=int(each["end_ns"] - each["start_ns"]),
            global_size=tuple(each["global"].tolist()),
            local_size=tuple(each["local"].tolist()),
        )
        for each in kernels
    )


def compare(engine: Sequence[Launch], layer: Sequence[Launch], untimed: Collection[str] = ()) -> Comparison:
    """Compare launch by launch, without those that the backend does not time."""
    seen = [each for each in layer if each.name not in untimed]
    by_engine, by_layer = Counter(each.name for each in engine), Counter(each.name for each in seen)
    names = sorted(by_engine | by_layer)
    both = by_engine.keys() & by_layer.keys()
    engine_ns = sum(each.duration_ns for each in engine if each.name in both)
    layer_ns = sum(each.duration_ns for each in seen if each.name in both)
    return Comparison(
        n_engine=len(engine),
        n_layer=len(seen),
        counts_that_differ={
            name: (by_engine[name], by_layer[name]) for name in names if by_engine[name] != by_layer[name]
        },
        untimed=dict(Counter(each.name for each in layer if each.name in untimed)),
        first_difference=_first_difference(engine, seen),
        duration_ratio=layer_ns / engine_ns if engine_ns else math.nan,
    )


def _first_difference(engine: Sequence[Launch], layer: Sequence[Launch]) -> int | None:
    for position, (left, right) in enumerate(zip(engine, layer, strict=False)):
        if replace(left, duration_ns=0) != replace(right, duration_ns=0):
            return position
    return None if len(engine) == len(layer) else min(len(engine), len(layer))


def _launch(row: dict[str, str]) -> Launch:
    return Launch(
        name=row[_KERNEL],
        duration_ns=round(float(row[_DURATION]) * 1e6),
        global_size=tuple(max(1, part) for part in _size(row[_GLOBAL])),  # it writes 0 for dimensions without use
        local_size=_size(row[_LOCAL]),
    )


def _size(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("x"))


def _tell(found: Comparison, within: float) -> None:
    print(f"launches timed by the backend: {found.n_engine}; by the layer: {found.n_layer}")
    for name, n in found.untimed.items():
        print(f"not timed by the backend: {n:6d}  {name}")
    for name, (n_engine, n_layer) in found.counts_that_differ.items():
        print(f"differs: {n_engine:6d} against {n_layer:6d}  {name}")
    if found.first_difference is not None:
        print(f"the first launch that differs: {found.first_difference}")
    print(f"total duration, layer over backend: {found.duration_ratio:.6f}")
    print("they agree" if found.agrees(within) else "they do not agree")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return the exit code."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiling", type=Path, metavar="CSV", help="the backend's cl_profiling.csv")
    parser.add_argument("log", type=Path, metavar="LOG", help="the layer's log of the same process")
    parser.add_argument("--untimed", action="append", default=[], metavar="KERNEL", help="not in the backend's file")
    parser.add_argument("--within", type=float, default=2.0, metavar="PERCENT", help="of the total duration (2)")
    options = parser.parse_args(arguments)
    try:
        layer = traced_launches(read_opencl_log(options.log))
        found = compare(read_profiling(options.profiling), layer, frozenset(options.untimed))
    except PerfsuiteError as error:
        print(f"compare_cl_profiling: {error}", file=sys.stderr)
        return 2
    _tell(found, options.within / 100)
    return 0 if found.agrees(options.within / 100) else 1


if __name__ == "__main__":
    sys.exit(main())
