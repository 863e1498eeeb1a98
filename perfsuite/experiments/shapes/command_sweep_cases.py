"""The cases of a sweep that the command line describes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.command_shape_options import asked_sizes, chosen_tiling
from perfsuite.experiments.shapes.sweep_expected import SweepSetting
from perfsuite.experiments.shapes.sweep_sizes import SizeRange, all_sizes, size_option, swept_dimension
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.operation_shape import OperationShape, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject, Tiling


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """What is swept, as far as the command line says; the rest is the device's to say."""

    operation: Operation
    subject: Subject
    type: str
    tiling: Tiling | None
    #: The sizes that were given, and the dimension that is swept.
    asked: Mapping[str, SizeRange]
    swept: str

    def setting(self, n_compute_units: int) -> SweepSetting:
        """Return the cases on a device of so many compute units.

        Raises `ShapeError`: the operation has no such size, or moves more than fits.
        """
        tile = None if self.tiling is None else self.tiling.tile
        sizes = all_sizes(self.operation, self.asked, type=self.type, tile=tile, n_compute_units=n_compute_units)
        _check_blocks(self.type, self.operation.inner_dimension, sizes)
        cases = tuple(self._case(sizes, size) for size in sizes[self.swept].sizes)
        return SweepSetting(cases=cases, swept=self.swept)

    def _case(self, sizes: Mapping[str, SizeRange], size: int) -> ShapeCase:
        fixed = {name: each.sizes[0] for name, each in sizes.items()}
        shape = OperationShape.of_sizes(self.operation, self.type, {**fixed, self.swept: size})
        return ShapeCase(subject=self.subject, shape=shape, tiling=self.tiling)


def sweep_request(options: argparse.Namespace) -> SweepRequest:
    """Return what the options of a sweep ask for; `ShapeError` where they contradict each other or the operation."""
    operation = Operation(options.operation)
    asked = asked_sizes(options, operation)
    return SweepRequest(
        operation=operation,
        subject=Subject(options.subject),
        type=options.type,
        tiling=chosen_tiling(options),
        asked=asked,
        swept=swept_dimension(operation, asked),
    )


def _check_blocks(type: str, inner: str, sizes: Mapping[str, SizeRange]) -> None:
    block = block_values(type)
    if wrong := [size for size in sizes[inner].sizes if size % block]:
        raise ShapeError(
            f"{size_option(inner)}: {type} stores rows in blocks of {block}, and {wrong[0]} is no multiple of that; "
            f"expected such as {block} or {block}:{16 * block}:{block}"
        )
