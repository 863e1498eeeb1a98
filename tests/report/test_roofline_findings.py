"""Sentences computed from points."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.roofline_run import Row, RowKind
from perfsuite.report.roofline_charts import sweep_finding

from .conftest import phases, row, run_of

PREFILL, DECODE, WHOLE_RUN = RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN


def finding(sweep: str, *rows: Row) -> str:
    return sweep_finding(sweep, run_of(rows), rows)


def test_shares_are_those_of_the_points() -> None:
    """The finding names the roof where both limits occur; so does a sweep with too few rows for a sentence."""
    rows = phases("base", "siso", 1.0)
    assert finding("base", *rows) == (
        "Prefill runs at 50 % of what arithmetic allows, decode runs at 50 % of what memory allows"
    )
    wider = (*rows, *phases("base", "liso", 0.5))
    assert "decode runs at 25 to 50 % of what memory allows" in finding("base", *wider)
    both = [row("base", "a", PREFILL, intensity=oi, gflops_per_s=20.0) for oi in (4.0, 400.0)]
    assert finding("base", *both) == "Prefill runs at 5 to 50 % of what the roof allows"
    one = row("threads", "2", DECODE, intensity=2.0, gflops_per_s=10.0)
    assert finding("threads", one) == "Decode runs at 50 % of what memory allows"


DEEP = row("depth", "64", DECODE, intensity=2.0, gflops_per_s=12.0, value=64.0)
SHALLOW = row("depth", "2", DECODE, intensity=2.0, gflops_per_s=10.0, value=2.0)
NOISY = row("depth", "64", DECODE, intensity=2.0, gflops_per_s=12.0, value=64.0, spread_ratio=0.3)
DEPTHS = "From 2 to 64 layers decode goes from 10.0 GFLOP/s to 12.0 GFLOP/s"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [
                row("precision", name, DECODE, intensity=at, gflops_per_s=5.0)
                for name, at in (("f16", 1.0), ("q8_0", 1.9))
            ],
            "Decode's operational intensity in FLOP/byte is 1.00 with F16, 1.90 with Q8_0",
        ),
        (
            [
                row("attention", name, DECODE, intensity=2.0, gflops_per_s=at)
                for name, at in (("mha", 9.0), ("gqa", 11.0))
            ],
            "Decode has the highest rate with GQA (11.0 GFLOP/s) and the lowest with MHA (9.00 GFLOP/s)",
        ),
        (
            [*phases("threads", "2", 1.0), *phases("threads", "1", 0.5, n_threads=1)],
            "With 2 threads instead of 1 prefill is 2.00 times as fast, decode is 2.00 times as fast",
        ),
        (
            [row("moe", "a", PREFILL, intensity=9.0, gflops_per_s=9.0, most_bytes_ratio=at) for at in (3.0, 1.5)],
            "Routing leaves prefill's operational intensity open by up to 3.00 times (small, 64 tokens)",
        ),
        (
            [row("length", str(n), PREFILL, intensity=n, gflops_per_s=n / 2.0, value=n) for n in (64, 16, 128)],
            "From 64 tokens arithmetic limits prefill; prefill runs at 5 to 16 % of what the roof allows",
        ),
        (
            [
                row("scenario", name, WHOLE_RUN, intensity=at, gflops_per_s=rate)
                for name, at, rate in (("siso", 4.0, 20.0), ("lilo", 8.0, 40.0), ("liso", 80.0, 399.0))
            ],
            "Of whole runs: LILO is nearest to the ridge of the 2 that memory limits; arithmetic limits LISO only",
        ),
        ([DEEP, SHALLOW], DEPTHS),
        ([NOISY, SHALLOW], f"{DEPTHS} (within the spread)"),
    ],
    ids=["precision", "attention", "threads", "moe", "length", "scenario", "depth", "within-spread"],
)
def test_each_sweep_has_a_sentence_of_its_own(rows: list[Row], told: str) -> None:
    """In whatever order its rows are; what regimes do not share is not compared."""
    assert finding(rows[0].sweep, *rows) == told


@pytest.mark.parametrize(("sweep", "noun"), [("kv", "a KV cache of"), ("flash", "flash attention")])
def test_settings_of_one_workload_are_compared_by_time(sweep: str, noun: str) -> None:
    rows = [row(sweep, name, DECODE, intensity=2.0, gflops_per_s=rate) for name, rate in (("a", 8.0), ("b", 12.0))]
    assert finding(sweep, *rows) == f"A token takes 1.50 times as long with {noun} a as with b"
