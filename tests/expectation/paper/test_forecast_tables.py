"""Tables 6 and 10."""

from __future__ import annotations

import pytest

from perfsuite.expectation.paper.decode_tables import decode_gib
from perfsuite.expectation.paper.forecast_tables import table_6, table_10


def _values(rows: object, hw: str, metric: str) -> dict[int, float]:
    assert hasattr(rows, "__iter__")
    found = [row for row in rows if dict(row.inputs)["hw"] == hw and row.metric == metric]
    return {int(dict(row.inputs)["prompt"]): row.value for row in found}


@pytest.mark.parametrize(("hw", "flops_per_s"), [("CPU", 326.4e9), ("NPU", 50e12), ("V100", 126e12)])
def test_half_the_device_takes_twice_as_long(hw: str, flops_per_s: float) -> None:
    """TTFT at 100 % is half of that at 50 %, which is TOPs over half the TOPS, rounded from 128 tokens on."""
    tops, half, full = (_values(table_6(), hw, metric) for metric in ("tops", "ttft_50", "ttft_100"))
    assert 1536 in tops
    for prompt, value in tops.items():
        used = round(value, 2) if prompt >= 128 else value
        assert half[prompt] == pytest.approx(used * 1e12 / (0.5 * flops_per_s))
        assert half[prompt] == pytest.approx(2 * full[prompt])


def test_an_efficiency_needs_a_measurement() -> None:
    """Only the three prompts that were measured on the CPU have one."""
    assert set(_values(table_6(), "CPU", "efficiency_pct")) == {32, 256, 2048}
    assert _values(table_6(), "NPU", "efficiency_pct") == _values(table_6(), "V100", "efficiency_pct") == {}
    assert {row.metric for row in table_10()} == {"forecast_tps"}


@pytest.mark.parametrize(
    ("hw", "gigabytes_per_s", "variant"),
    [("CPU", 24, "bf16-bf16"), ("iGPU", 128, "bf16-int4"), ("V100", 450, "fp16-fp16")],
)
def test_throughput_is_bandwidth_over_memory(hw: str, gigabytes_per_s: float, variant: str) -> None:
    """GB/s at the assumed efficiency over Table 7's GiB."""
    for prompt, value in _values(table_10(), hw, "forecast_tps").items():
        assert value == pytest.approx(gigabytes_per_s / decode_gib(variant, prompt))
