"""``observation.json``: how large it is."""

from __future__ import annotations

import json
from pathlib import Path

from perfsuite.records.observation import (
    CaseWork,
    MachineState,
    Observation,
    OperatorSpan,
    PhaseTimeline,
    TokenLatency,
    plain_observation,
    write_observation,
)

_FULL = Observation(
    timelines=(
        PhaseTimeline(
            phase="decode",
            n_tokens=1,
            duration_ns=9,
            operators=(
                OperatorSpan(role="embd", op="GET_ROWS", layer=None, start_ns=0, duration_ns=1),
                OperatorSpan(role="Qcur", op="MUL_MAT", layer=0, start_ns=1, duration_ns=2),
                OperatorSpan(role="Qcur", op="MUL_MAT", layer=1, start_ns=3, duration_ns=2),
            ),
        ),
    ),
    states=(
        MachineState(
            group="llama",
            at_s=0.5,
            is_valid=True,
            load_average=0.1,
            cpu_mhz=None,
            temperature_celsius=None,
            waiting_ratio=0.0,
            steal_ratio=None,
            throttled=False,
            battery_ratio=0.8,
            power_watts=6.5,
            least_cpu_mhz=1800.0,
            most_cpu_mhz=2400.0,
            most_celsius=91.5,
        ),
    ),
)


def test_an_operator_is_a_row_of_numbers(tmp_path: Path) -> None:
    """Names stand once: 32 layers, 512 tokens and 500 cases are less than 300 KB."""
    (timeline,) = json.loads(json.dumps(plain_observation(_FULL)))["timelines"]
    assert timeline["names"] == [{"role": "embd", "op": "GET_ROWS"}, {"role": "Qcur", "op": "MUL_MAT"}]
    assert timeline["operator_fields"] == ["name", "layer", "start_ns", "duration_ns"]
    assert timeline["operators"] == [[0, None, 0, 1], [1, 0, 1, 2], [1, 1, 3, 2]]
    row = [
        OperatorSpan(role=f"role_{index}", op="MUL_MAT", layer=layer, start_ns=10**9 + index, duration_ns=10**6 + index)
        for layer in range(32)
        for index in range(17)
    ]
    timelines = [
        PhaseTimeline(phase=phase, n_tokens=1, duration_ns=10**10, operators=tuple(row * n_batches))
        for phase, n_batches in (("prefill", 4), ("decode", 1))
    ]
    works = [CaseWork(case_id=f"operator/{'x' * 40}/{n}", flops=10**9, moved_bytes=10**8) for n in range(500)]
    tokens = [TokenLatency(n_context=n, samples_ns=(30_000_000,) * 10) for n in range(512)]
    seen = Observation(timelines=tuple(timelines), works=tuple(works), tokens=tuple(tokens))
    assert write_observation(seen, tmp_path).stat().st_size < 300_000
