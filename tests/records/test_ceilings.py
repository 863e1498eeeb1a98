"""Facts about ceilings: which bandwidth holds where, how runs merge, what is read back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.ceilings import Bandwidth, Ceilings, merge_ceilings

KIB, MIB = 1024, 1024 * 1024

L2 = Bandwidth(working_set_bytes=512 * KIB, read_bytes_per_s=200e9, copy_bytes_per_s=210e9, triad_bytes_per_s=190e9)
L3 = Bandwidth(working_set_bytes=16 * MIB, read_bytes_per_s=100e9, copy_bytes_per_s=90e9, triad_bytes_per_s=95e9)
MEMORY = Bandwidth(working_set_bytes=128 * MIB, read_bytes_per_s=30e9, copy_bytes_per_s=28e9, triad_bytes_per_s=33e9)

CEILINGS = Ceilings(
    n_threads=2,
    bandwidths=(L2, L3, MEMORY),
    fp32_flops_per_s=4e11,
    int8_flops_per_s=1.6e12,
    f16_flops_per_s=None,
    dispatch_ns=300,
)


@pytest.mark.parametrize(
    ("working_set_bytes", "level"),
    [(0, L2), (512 * KIB, L2), (512 * KIB + 1, L3), (16 * MIB, L3), (17 * MIB, MEMORY), (4 << 30, MEMORY)],
)
def test_sustained_bandwidth_is_read_from_the_smallest_level_that_holds_the_set(
    working_set_bytes: int, level: Bandwidth
) -> None:
    assert CEILINGS.sustained_bandwidth_bytes_per_s(working_set_bytes) == level.read_bytes_per_s


@pytest.mark.parametrize(
    ("working_set_bytes", "expected"),
    [(1, 210e9), (512 * KIB, 210e9), (15 * MIB, 210e9), (16 * MIB, 100e9), (127 * MIB, 100e9), (128 * MIB, 33e9)],
)
def test_fastest_bandwidth_is_the_best_pattern_of_the_level_within_the_set(
    working_set_bytes: int, expected: float
) -> None:
    """Between two measured working sets the floor grants the faster level, for part of the set may be there."""
    assert CEILINGS.fastest_bandwidth_bytes_per_s(working_set_bytes) == expected


def test_fastest_bandwidth_looks_at_larger_levels_too() -> None:
    quick = replace(MEMORY, read_bytes_per_s=300e9)
    ceilings = replace(CEILINGS, bandwidths=(L2, L3, quick))
    assert ceilings.fastest_bandwidth_bytes_per_s(1) == 300e9


def test_merging_takes_the_best_rates_and_the_median_dispatch() -> None:
    slow_cache = replace(L2, read_bytes_per_s=1e9, triad_bytes_per_s=250e9)
    second = replace(CEILINGS, bandwidths=(slow_cache, L3, MEMORY), fp32_flops_per_s=5e11, dispatch_ns=90_000)
    third = replace(CEILINGS, int8_flops_per_s=1e12, f16_flops_per_s=7e11, dispatch_ns=310)
    assert merge_ceilings([CEILINGS, second, third]) == replace(
        CEILINGS,
        bandwidths=(replace(L2, triad_bytes_per_s=250e9), L3, MEMORY),
        fp32_flops_per_s=5e11,
        f16_flops_per_s=7e11,
        dispatch_ns=310,
    )
