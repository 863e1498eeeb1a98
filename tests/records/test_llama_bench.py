"""One test of llama-bench as a record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.records.llama_bench import BenchRun, measured_times

RECORDED = Path(__file__).parent.parent / "data" / "llama-bench.json"


@pytest.fixture
def plain() -> dict[str, Any]:
    first: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))[0]
    return first


def test_a_record_goes_back_to_the_same_fields(plain: dict[str, Any]) -> None:
    """Names and values are kept, unknown columns too; older releases write truth values for 1 and 0."""
    run = BenchRun.from_plain(plain, "here")
    assert (run.build_commit, run.model_n_params, run.n_prompt, run.n_gen) == ("0c1e570", 134515008, 16, 0)
    assert (dict(run.others)["poll"], run.samples_ns) == (50, tuple(plain["samples_ns"]))
    plain["column_of_tomorrow"] = "x"
    written = BenchRun.from_plain(plain, "here").to_plain()
    assert (written.pop("samples_ts"), written) == (pytest.approx(plain.pop("samples_ts"), rel=1e-4), plain)
    plain["flash_attn"] = True
    flash_attn = BenchRun.from_plain(plain, "here").flash_attn
    assert flash_attn == 1
    assert type(flash_attn) is int


def test_times_are_those_that_llama_bench_computed(plain: dict[str, Any]) -> None:
    """Mean and deviation except rounding, 0 of a single repetition; the mean where no other is known."""
    run = BenchRun.from_plain(plain, "here")
    times = measured_times(run.samples_ns, 16)
    assert (times["avg_ns"], times["stddev_ns"]) == (run.avg_ns, pytest.approx(run.stddev_ns, rel=1e-5))
    assert times["avg_ts"] == pytest.approx(run.avg_ts, rel=1e-6)
    assert times["stddev_ts"] == pytest.approx(run.stddev_ts, rel=1e-6)
    assert measured_times((2_000_000_000,), 16) == {
        "samples_ns": (2_000_000_000,),
        "avg_ns": 2_000_000_000,
        "stddev_ns": 0,
        "avg_ts": 8.0,
        "stddev_ts": 0.0,
    }
    run = replace(BenchRun.from_plain(plain, "here"), samples_ns=(9, 1, 2), avg_ns=4)
    assert (run.time_ns, replace(run, samples_ns=()).time_ns) == (2, 4)
