"""The options of commands that measure operations by their shapes, and the meters that they open."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from perfsuite.cli.run_options import add_shared
from perfsuite.device.profile import find_profile
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.sweep_sizes import MEANS, size_option
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, OperationShape
from perfsuite.workload.shapes.shape_case import TILES, VECTORS, Subject, Tiling

if TYPE_CHECKING:
    from perfsuite.measure.board.protocol import Board
    from perfsuite.measure.shapes.meter import ShapeMeters

DEFAULT_TILE = 64
DEFAULT_VECTOR = 8

#: The most threads that ggml takes (``GGML_MAX_N_THREADS`` in ggml.h), and more of the others than anybody waits for.
_MOST_COUNTS = {"threads": 512, "processes": 1024, "rounds": 1 << 16}

#: Most that an operation may move, so that its operands fit beside those of others.
_MOST_BYTES = 2 << 30

_DIMENSIONS = tuple(MEANS)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add what says on what it is measured."""
    add_shared(parser, "device", "opencl-platform")
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: physical cores)")


def add_subject_options(parser: argparse.ArgumentParser) -> None:
    """Add who computes, how B is stored, and how the suite's kernels are cut."""
    text = "the suite's tiled OpenCL kernels, or a backend of ggml (default tiled)"
    parser.add_argument("--subject", choices=[each.value for each in Subject], default=Subject.TILED.value, help=text)
    parser.add_argument("--type", choices=STORED_TYPES, default="f32", help="type of B (default f32)")
    tiles, vectors = (", ".join(map(str, each)) for each in (TILES, VECTORS))
    text = f"tile of the suite's kernels: {tiles} (default {DEFAULT_TILE})"
    parser.add_argument("--tile", type=int, metavar="N", help=text)
    text = f"vector width of the suite's kernels: {vectors} (default {DEFAULT_VECTOR})"
    parser.add_argument("--vector", type=int, metavar="N", help=text)


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes of all operations; `asked_sizes` refuses those that an operation does not have."""
    group = parser.add_argument_group("sizes", "N, or FIRST:LAST[:STEP] for the one that is swept")
    for name in _DIMENSIONS:
        add_size_option(group, name, "N")


def add_size_option(group: argparse._ArgumentGroup, name: str, metavar: str) -> None:
    """Add the size of one dimension."""
    of = ", ".join(each.value for each in Operation if name in each.dimensions)
    group.add_argument(size_option(name), dest=f"size_{name}", metavar=metavar, help=f"{MEANS[name]} ({of})")


def size_texts(options: argparse.Namespace, operation: Operation) -> dict[str, str]:
    """Return the sizes that were given, by dimension; `ShapeError` where the operation has none such."""
    texts = {name: text for name in _DIMENSIONS if (text := getattr(options, f"size_{name}", None)) is not None}
    for name in texts.keys() - set(operation.dimensions):
        if name not in ("b", "m") or texts[name] != "1":
            known = ", ".join(size_option(each) for each in operation.dimensions)
            raise ShapeError(f"{size_option(name)}={texts[name]}: {operation.value} has no such size; it has {known}")
    return {name: texts[name] for name in operation.dimensions if name in texts}


def chosen_tiling(options: argparse.Namespace) -> Tiling | None:
    """Return the tiling that was asked for, or the default; `ShapeError` where no kernel has it, or ggml chooses it."""
    if Subject(options.subject) is not Subject.TILED:
        for name in ("tile", "vector"):
            if (value := getattr(options, name)) is not None:
                raise ShapeError(f"--{name}={value}: {options.subject} cuts its work as it sees fit; leave it out")
        return None
    tile = DEFAULT_TILE if options.tile is None else options.tile
    vector = min(DEFAULT_VECTOR, tile) if options.vector is None else options.vector
    try:
        return Tiling(tile=tile, vector=vector)
    except ShapeError as error:
        raise ShapeError(f"--tile={tile} --vector={vector}: {error}") from None


def check_counts(options: argparse.Namespace, *names: str) -> None:
    """Refuse options that must be 1 or more and are not, or are far too many."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not 1 <= value <= _MOST_COUNTS[name]:
            raise ShapeError(f"--{name}={value}: expected 1 to {_MOST_COUNTS[name]}")


def check_shape_bytes(shapes: Iterable[OperationShape], *, verifies: bool) -> None:
    """Refuse operations that move more than the operands of several can have.

    To verify an output, NumPy takes each stored value by itself, however few bits it is stored in.
    """
    largest = max(shapes, key=lambda shape: shape.moved_bytes)
    n_bytes = (replace(largest, type="f32") if verifies else largest).moved_bytes
    if n_bytes > _MOST_BYTES:
        how = " as F32 values, which NumPy verifies it with" if n_bytes > largest.moved_bytes else ""
        raise ShapeError(f"{largest.id}: moves {n_bytes} bytes{how}, expected at most {_MOST_BYTES}")


@contextmanager
def opened_meters(options: argparse.Namespace, subject: Subject, board: Board) -> Iterator[ShapeMeters]:
    """Open the meters of a subject on a board as the options say; nothing is left running afterwards."""
    from perfsuite.measure.shapes.meters import open_meters  # what measures is slow to import

    platform = options.opencl_platform or find_profile(options.device).opencl_platform
    with (
        work_folder() as log_dir,
        open_meters(
            subject,
            board,
            log_dir=log_dir,
            n_threads=options.threads or board.facts().default_threads,
            platform=platform,
        ) as meters,
    ):
        yield meters
