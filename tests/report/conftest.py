"""A small roofline run with round numbers: 2 threads do 100 GFLOP/s over 10 GB/s, or 400 with 8-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, CPU, Ceiling, Rate, Resource, Survey
from perfsuite.expectation.roofline.point import Work, WorkPart
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind, Subject

GIGA = 1_000_000_000
MIB = 1 << 20
#: Working set and GB/s by two threads: two levels of cache, a rung between levels, and memory.
LADDER = ((MIB // 16, 200.0), (MIB // 8, 95.0), (MIB // 4, 100.0), (MIB, 50.0), (256 * MIB, 10.0))


def bandwidth(kind: str, held_bytes: int, gb_per_s: float, n_threads: int | None = 2, processor: str = CPU) -> Ceiling:
    """One rung of a ladder, whose median round is a tenth below the best."""
    rate = Rate(best_per_s=gb_per_s * GIGA, median_per_s=0.9 * gb_per_s * GIGA, n_rounds=5)
    return Ceiling(
        processor=processor,
        resource=Resource.BANDWIDTH,
        kind=kind,
        n_threads=n_threads,
        working_set_bytes=held_bytes,
        rate=rate,
    )


def compute(kind: str, gflops_per_s: float | None, n_threads: int = 2) -> Ceiling:
    rate = Rate(best_per_s=gflops_per_s * GIGA, median_per_s=gflops_per_s * GIGA, n_rounds=5) if gflops_per_s else None
    missing = "" if rate else "this processor has none"
    return Ceiling(processor=CPU, resource=Resource.COMPUTE, kind=kind, n_threads=n_threads, rate=rate, missing=missing)


def survey() -> Survey:
    """Two threads, and one that does half of all."""
    return Survey(
        ceilings=tuple(
            ceiling
            for n_threads in (2, 1)
            for ceiling in (
                *(
                    bandwidth(kind, held_bytes, rate * n_threads / 2, n_threads)
                    for held_bytes, rate in LADDER
                    for kind in BANDWIDTH_KINDS
                ),
                compute("fp32", 50.0 * n_threads, n_threads),
                compute("f16", None, n_threads),
                compute("int8", 200.0 * n_threads, n_threads),
            )
        )
    )


def work(intensity: float, type_name: str = "q8_0", most_bytes_ratio: float = 1.0) -> Work:
    """1 GB from memory, computed with so many FLOPs a byte; a router may read that many times as much."""
    part = WorkPart(
        type=type_name,
        flops=round(intensity * GIGA),
        stored_bytes=GIGA,
        least_stored_bytes=GIGA,
        most_stored_bytes=round(most_bytes_ratio * GIGA),
        stored_set_bytes=GIGA,
        activation_bytes=0,
        activation_set_bytes=0,
    )
    return Work(parts=(part,), counts_activations=False)


def row(
    sweep: str,
    setting: str,
    kind: RowKind,
    *,
    intensity: float,
    gflops_per_s: float,
    value: float | None = None,
    role: str = "",
    type_name: str = "q8_0",
    most_bytes_ratio: float = 1.0,
    architecture: str = "small",
    n_threads: int = 2,
    spread_ratio: float = 0.0,
) -> Row:
    """A row at an intensity and a rate, whose samples lie apart by twice the spread."""
    time_ns = intensity * GIGA / gflops_per_s
    samples_ns = tuple(round(time_ns * (1.0 + part * spread_ratio)) for part in (-1.0, 0.0, 1.0))
    return Row(
        sweep=sweep,
        setting=setting,
        value=value,
        kind=kind,
        role=role,
        subject=Subject(
            weights=f"{architecture}-{type_name}",
            architecture=architecture,
            quantization=type_name,
            attention="gqa",
            n_parameters=GIGA,
            n_layers=8,
            scenario="p64-g16",
            n_prompt=64,
            n_gen=16,
            n_depth=0,
            n_threads=n_threads,
            flash_attn=True,
            type_k="f16",
            type_v="f16",
        ),
        work=work(intensity, type_name, most_bytes_ratio),
        samples_ns=samples_ns,
    )


def phases(sweep: str, setting: str, factor: float, **more: float) -> tuple[Row, ...]:
    """A prefill, a decode and a whole run, whose rates are multiplied by `factor`."""
    return (
        row(sweep, setting, RowKind.PREFILL, intensity=100.0, gflops_per_s=200.0 * factor, **more),  # type: ignore[arg-type]
        row(sweep, setting, RowKind.DECODE, intensity=2.0, gflops_per_s=10.0 * factor, **more),  # type: ignore[arg-type]
        row(sweep, setting, RowKind.WHOLE_RUN, intensity=8.0, gflops_per_s=40.0 * factor, **more),  # type: ignore[arg-type]
    )


def run_of(rows: Sequence[Row], device: str = "host") -> RooflineRun:
    return RooflineRun(
        suite_version="1",
        recorded_at="2026-03-01T12:00:00+00:00",
        device=device,
        engine="llama.cpp 1",
        fingerprint={},
        n_threads=2,
        survey=survey(),
        rows=tuple(rows),
    )
