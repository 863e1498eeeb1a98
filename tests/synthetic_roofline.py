"""Rooflines of a made-up device with round numbers, so that points can be worked out by hand and nothing is measured.

The processor reads, copies and adds 100 GB/s in its cache (1 MB) and 20 GB/s in memory (1 GB), and computes 400 GFLOP/s
in 32-bit floats and 1600 in 8-bit integers; it has no 16-bit floats. Its ridge over memory lies at 20 FLOPs a byte.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.memory.need import MemoryNeed
from perfsuite.expectation.roofline.ceiling import (
    BANDWIDTH_KINDS,
    CPU,
    Ceiling,
    IndependentRate,
    Rate,
    Resource,
    Survey,
)
from perfsuite.expectation.roofline.point import Work, WorkPart
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind, Subject
from perfsuite.records.ceilings import Bandwidth, Ceilings
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline

N_THREADS = 2

CACHE_BYTES, MEMORY_BYTES = 1_000_000, 1_000_000_000
CACHE_BYTES_PER_S, MEMORY_BYTES_PER_S = 100e9, 20e9
FP32_FLOPS_PER_S, INT8_FLOPS_PER_S = 400e9, 1600e9

#: Of each rate, how far the median round stays below the best.
SPREAD_RATIO = 0.1


def rate(best_per_s: float, spread_ratio: float = SPREAD_RATIO) -> Rate:
    return Rate(best_per_s=best_per_s, median_per_s=best_per_s * (1 - spread_ratio), n_rounds=5)


def bandwidth_ceiling(
    best_per_s: float, working_set_bytes: int, *, kind: str = "read", n_threads: int | None = N_THREADS, **changes: Any
) -> Ceiling:
    ceiling = Ceiling(
        processor=CPU,
        resource=Resource.BANDWIDTH,
        kind=kind,
        n_threads=n_threads,
        working_set_bytes=working_set_bytes,
        rate=rate(best_per_s),
    )
    return replace(ceiling, **changes)


def compute_ceiling(
    best_per_s: float | None, *, kind: str = "fp32", n_threads: int | None = N_THREADS, **changes: Any
) -> Ceiling:
    """Return the ceiling of arithmetic on one type of number; None where the processor has none."""
    ceiling = Ceiling(
        processor=CPU,
        resource=Resource.COMPUTE,
        kind=kind,
        n_threads=n_threads,
        rate=None if best_per_s is None else rate(best_per_s),
        missing="the processor has none" if best_per_s is None else "",
    )
    return replace(ceiling, **changes)


def processor_ceilings(*levels: tuple[int, float], copy_ratio: float = 1.0, **changes: Any) -> Ceilings:
    """Return the ceilings of a processor: 0.4 TFLOP/s of floats, 1.6 of integers, and working sets with their rates.

    Without any, caches of 1 and 10 MB have 400 and 200 GB/s, and memory has 50.
    """
    usual = Ceilings(
        n_threads=N_THREADS,
        bandwidths=tuple(
            Bandwidth(
                working_set_bytes=size,
                read_bytes_per_s=per_s,
                copy_bytes_per_s=per_s * copy_ratio,
                triad_bytes_per_s=per_s,
            )
            for size, per_s in levels or ((10**6, 4e11), (10**7, 2e11), (10**8, 5e10))
        ),
        fp32_flops_per_s=4e11,
        int8_flops_per_s=1.6e12,
        f16_flops_per_s=None,
        dispatch_ns=300,
    )
    return replace(usual, **changes)


def ceilings(n_threads: int | None = N_THREADS, *, share: float = 1.0, **changes: Any) -> tuple[Ceiling, ...]:
    """Return all ceilings of one number of threads, each a share of the device's."""
    levels = ((CACHE_BYTES, CACHE_BYTES_PER_S), (MEMORY_BYTES, MEMORY_BYTES_PER_S))
    return (
        *(
            bandwidth_ceiling(per_s * share, held_bytes, kind=kind, n_threads=n_threads, **changes)
            for held_bytes, per_s in levels
            for kind in BANDWIDTH_KINDS
        ),
        compute_ceiling(FP32_FLOPS_PER_S * share, kind="fp32", n_threads=n_threads, **changes),
        compute_ceiling(None, kind="f16", n_threads=n_threads, **changes),
        compute_ceiling(INT8_FLOPS_PER_S * share, kind="int8", n_threads=n_threads, **changes),
    )


def survey(*thread_counts: int) -> Survey:
    counts = thread_counts or (N_THREADS,)
    return Survey(ceilings=tuple(each for count in counts for each in ceilings(count, share=count / N_THREADS)))


def part(**changes: Any) -> WorkPart:
    """Return a part in 8-bit integers over memory: 2 GFLOP, 1 GB read, 0.1 GB of activations in the cache."""
    usual = WorkPart(
        type="q8_0",
        flops=2 * 10**9,
        stored_bytes=10**9,
        least_stored_bytes=10**9,
        most_stored_bytes=10**9,
        stored_set_bytes=MEMORY_BYTES,
        activation_bytes=10**8,
        activation_set_bytes=CACHE_BYTES,
    )
    return replace(usual, **changes)


def work(*parts: WorkPart, counts_activations: bool = False) -> Work:
    return Work(parts=parts or (part(),), counts_activations=counts_activations)


def bound_work(operational_intensity: float) -> Work:
    """Return work of 32-bit floats over memory with so many FLOPs a byte, of 10⁹ bytes."""
    return work(part(type="f32", flops=round(operational_intensity * 10**9)))


def subject(**changes: Any) -> Subject:
    usual = Subject(
        weights="own-q8_0",
        architecture="own",
        quantization="q8_0",
        attention="gqa",
        n_parameters=1_000_000,
        n_layers=4,
        scenario="siso",
        n_prompt=64,
        n_gen=24,
        n_depth=0,
        n_threads=N_THREADS,
        flash_attn=True,
        type_k="f16",
        type_v="f16",
    )
    return replace(usual, **changes)


def row(**changes: Any) -> Row:
    """Return a row: the decode of a workload that no sweep varies, in 100 ms, which is half of what memory lets."""
    usual = Row(
        sweep="base",
        setting="siso",
        value=None,
        kind=RowKind.DECODE,
        role="",
        subject=subject(),
        work=work(),
        samples_ns=(99_000_000, 100_000_000, 102_000_000),
    )
    return replace(usual, **changes)


def prefill_row(**changes: Any) -> Row:
    """Return a row in the compute regime: 100 FLOPs a byte, in 500 ms, which is half of what arithmetic lets."""
    return row(kind=RowKind.PREFILL, work=bound_work(100), samples_ns=(500_000_000,) * 3, **changes)


def memory_record(**changes: Any) -> MemoryRecord:
    """Return the memory of one process: 1000 bytes before the model, 500 more predicted, 1600 at the peak."""
    base = MemorySample(at_ns=9, anonymous_bytes=600, file_bytes=400, shared_bytes=0)
    usual = MemoryRecord(
        weights="own-q8_0",
        scenario="siso",
        need=MemoryNeed(
            weights_file_bytes=300,
            weights_mapped_bytes=300,
            weights_repacked_bytes=0,
            kv_bytes=100,
            compute_bytes=800,
            compute_touched_bytes=80,
            output_bytes=10,
            work_bytes=10,
        ),
        timeline=MemoryTimeline(
            samples=(base, replace(base, at_ns=20, anonymous_bytes=900, file_bytes=700)),
            peak_rss_bytes=1600,
            base=base,
            phases=(MemoryPhase(name="load", start_ns=10, end_ns=20, peak_bytes=1600),),
        ),
        vram_bytes=None,
        vram_missing="the run puts no layer on a GPU",
    )
    return replace(usual, **changes)


def independent_rate(**changes: Any) -> IndependentRate:
    """Return what NumPy reads of memory: a fifth less than the device's ceiling."""
    usual = IndependentRate(
        program="numpy",
        resource=Resource.BANDWIDTH,
        kind="read",
        processor=CPU,
        n_threads=N_THREADS,
        best_per_s=16e9,
    )
    return replace(usual, **changes)


def roofline_run(*rows: Row, **changes: Any) -> RooflineRun:
    usual = RooflineRun(
        suite_version="1.2.3",
        recorded_at="2025-01-02T03:04:05+00:00",
        device="host",
        engine="llama.cpp 1, build 0123456789abcdef",
        fingerprint={"soc": "A"},
        n_threads=N_THREADS,
        survey=survey(),
        rows=rows or (row(), prefill_row()),
    )
    return replace(usual, **changes)
