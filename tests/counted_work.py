"""Counted work as the tests have it: a phase, and an operator of it."""

from __future__ import annotations

from typing import Any

from perfsuite.records.counts import METRICS, CountedWork, CountRow

#: An operator, as a file has it.
ROW: dict[str, Any] = {"phase": "prefill", "role": "attn_q", **dict.fromkeys(METRICS, 1000), "allocations": 0}


def work(**operator: int) -> CountedWork:
    """Return counted work, of which the operator did something else."""
    return CountedWork(
        model="tiny",
        model_digest="d1",
        scenario="p16-g4",
        settings="flash_attn=on kv_types=f16/f16",
        llama="llama-cpp-python 0.3.36",
        llama_digest="d2",
        bundle="d3",
        compiler="zig 0.17.1",
        processor="x86-64-v3",
        rows=(
            CountRow(phase="prefill", role="", **dict.fromkeys(METRICS, 1_000_000)),
            CountRow(**{**ROW, **operator}),
        ),
    )


WORK = work()
