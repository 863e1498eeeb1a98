"""The least time that a device's ceilings allow an operation at a shape, and what a measurement reaches of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.errors import ShapeError
from perfsuite.expectation.ceilings import Ceilings, fastest_bytes_per_s
from perfsuite.units import NS_PER_S
from perfsuite.workload.shapes.operation_shape import OperationShape

#: Arithmetic that a kernel may use by how the weights are stored: their own, and what they are widened to.
_PATHS = {"f32": ("fp32",), "f16": ("fp32", "f16")}
#: Quantised weights may be multiplied as integers, or as floats of either width.
_QUANTISED_PATHS = ("fp32", "f16", "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCeilings:
    """What nothing on a device exceeds: the best rates that it has shown."""

    #: Working sets, ascending, and the fastest of read, copy and triad at each.
    bandwidths: tuple[tuple[int, float], ...]
    #: By kind: ``fp32``, and ``f16`` and ``int8`` where the device has them.
    flops_per_s: Mapping[str, float]
    #: What may be faster by: the share that the ceilings' own runs differ by.
    spread_ratio: float

    def __post_init__(self) -> None:
        """Refuse ceilings that bound nothing."""
        if not self.bandwidths or "fp32" not in self.flops_per_s:
            raise ShapeError("ceilings: expected a bandwidth and the rate of fp32; measure the device's ceilings again")
        if not 0.0 <= self.spread_ratio < 1.0:
            raise ShapeError(f"ceilings: spread_ratio is {self.spread_ratio}, expected 0 or more and less than 1")

    @classmethod
    def of_processor(cls, ceilings: Ceilings, *, spread_ratio: float) -> ShapeCeilings:
        """Return those of the processor, by the suite's probes: for ggml, and for OpenCL on a processor.

        A compiler of OpenCL kernels may leave the processor's integer dot products unused, which makes them no less
        possible.
        """
        rates = {"fp32": ceilings.fp32_flops_per_s, "f16": ceilings.f16_flops_per_s, "int8": ceilings.int8_flops_per_s}
        return cls(
            bandwidths=tuple((level.working_set_bytes, level.fastest_bytes_per_s) for level in ceilings.bandwidths),
            flops_per_s={kind: rate for kind, rate in rates.items() if rate is not None},
            spread_ratio=spread_ratio,
        )

    def fastest_flops_per_s(self, type: str) -> float:
        """Return the fastest arithmetic for weights of a stored type."""
        paths = _PATHS.get(type, _QUANTISED_PATHS)
        return max(rate for kind, rate in self.flops_per_s.items() if kind in paths)

    def fastest_bandwidth_bytes_per_s(self, working_set_bytes: int) -> float:
        """Return the fastest bandwidth from the largest level within the working set upwards."""
        return fastest_bytes_per_s(self.bandwidths, working_set_bytes)


def floor_ns(shape: OperationShape, ceilings: ShapeCeilings) -> float:
    """Return the least time of one launch, ns: max(FLOPs / fastest arithmetic, bytes / fastest bandwidth).

    The arithmetic is the fastest for the stored type. The bytes are the least that must move, each operand read once
    and the output written once; they are the working set as well, for a shape is measured again and again and finds in
    a cache what fits there. Work on padding is not counted, nor is the start of a launch: both only add to it.

    *Source*: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009.
    """
    moved_bytes = shape.moved_bytes
    compute_s = shape.flops / ceilings.fastest_flops_per_s(shape.type)
    memory_s = moved_bytes / ceilings.fastest_bandwidth_bytes_per_s(moved_bytes)
    return max(compute_s, memory_s) * NS_PER_S


def efficiency_ratio(shape: OperationShape, ceilings: ShapeCeilings, measured_ns: float) -> float:
    """Return floor / measured: 1 at the ceilings, above it where a measurement cannot be true."""
    return floor_ns(shape, ceilings) / measured_ns
