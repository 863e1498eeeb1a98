"""``perfsuite variants``, with its measurements replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.variants.measurement import AXES, Forecast, VariantBench, VariantPoint, VariantRow
from tests.command_streams import Streams

SMALL = ["variants", "--model=smollm2-135m-l2-q8_0", "--draft=smollm2-135m-l1-q8_0"]


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> list[VariantPoint]:
    found: list[VariantPoint] = []

    def measure(
        points: Sequence[VariantPoint], forecast: Forecast, bench: VariantBench, tell: Callable[[str], None]
    ) -> tuple[VariantRow, ...]:
        found.extend(points)
        shared = {"forecast_ratio": 1.1, "measured_ratio": 1.0, "lower_ratio": 0.9, "upper_ratio": 1.2}
        return tuple(
            VariantRow(
                axis=point.axis,
                setting=point.setting,
                latency=AXES[point.axis][1][0],
                n_pairs=bench.n_pairs,
                expected_ns=2e6,
                measured_ns=1e6,
                **shared,
            )
            for point in points
        )

    monkeypatch.setattr("perfsuite.experiments.variants.command.measure_variants", measure)
    monkeypatch.setattr("perfsuite.experiments.variants.command.measured_ceilings", lambda board, n_threads: None)
    return found


def test_all_axes_are_measured_unless_some_are_named(asked: list[VariantPoint]) -> None:
    assert main(SMALL) == 0
    assert {point.axis for point in asked} == set(AXES)
    asked.clear()
    assert main([*SMALL, "--axis=kv", "--axis=kv"]) == 0
    assert [point.setting for point in asked] == ["f32", "q8_0", "q5_1", "q4_0"]


def test_without_a_calibration_ratios_alone_are_compared(capsys: Streams) -> None:
    assert main([*SMALL, "--axis=lora", "--markdown"]) == 0
    out = capsys.readouterr().out
    assert "| lora | rank 4 | TTFT | 1.100 | 1.000 | 0.900 to 1.200 | +10.0 % | - | 1.00 ms | - |" in out
    assert out.endswith("- lora, TTFT: mean error of the ratios 10.0%, over 4 points\n")


def test_programs_read_json(capsys: Streams) -> None:
    assert main([*SMALL, "--axis=chunk", "--pairs=2", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    first = plain["rows"][0]
    assert (first["setting"], first["n_pairs"], first["is_calibrated"]) == ("32 tokens", 2, False)
    assert [each["axis"] for each in plain["summaries"]] == ["chunk"]
