"""The published devices for people and for programs."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.experiments.roofline.command_published import published_answer
from tests.command_streams import Streams, plain_of, printed


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """Return what programs read, through JSON and back."""
    found: dict[str, Any] = plain_of(published_answer())
    return found


def test_ridge_points_for_programs(plain: dict[str, Any]) -> None:
    """The five devices of RooflineBench have their printed ridge points; where no roof is told there is none."""
    points = {each["name"]: each["ridge_point"] for each in plain["devices"] if each["paper"] == "RooflineBench"}
    assert [f"{point:.2f}" for point in points.values()] == ["38.00", "37.05", "25.39", "20.48", "8.98"]
    others = {each["name"]: each["ridge_point"] for each in plain["devices"]}
    assert others["NVIDIA V100"] is None


def test_devices_say_what_contradicts_them(plain: dict[str, Any]) -> None:
    """Contradicted, held without contradiction, and never held are three things."""
    found = {each["name"]: (each["is_contradicted"], each["contradicted_by_ratio"]) for each in plain["devices"]}
    assert found["Raspberry Pi 5"] == (True, pytest.approx(2.64, abs=0.01))
    assert found["Apple M1 Pro"] == (True, pytest.approx(1.34, abs=0.01))
    assert found["Jetson Orin Nano Super 8G"] == found["NVIDIA RTX 3070 Ti Laptop"] == (False, None)
    assert found["NVIDIA RTX 3090"] == found["NVIDIA V100"] == (None, None)


def test_devices_are_whole(plain: dict[str, Any]) -> None:
    """Each has its class, its ceilings, their sources and both ridge points."""
    pi = next(each for each in plain["devices"] if each["name"] == "Raspberry Pi 5")
    assert pi["device_class"] == "CPU"
    assert pi["corrected_bandwidth_bytes_per_s"] == pytest.approx(5.97e9)
    assert pi["measured_ridge_point"] == pytest.approx(78.56 / 3.98)
    assert pi["contradicted_resource"] == "bandwidth"
    assert set(pi["sources"]) <= set(pi)


def test_rates_say_what_they_need(plain: dict[str, Any]) -> None:
    """Decode needs bytes, prefill FLOPs; each ratio is over the ceiling that it is named after."""
    decode = next(each for each in plain["rates"] if each["device"] == "Raspberry Pi 5" and each["phase"] == "decode")
    assert decode["needed_bytes_per_s"] / 3.98e9 == pytest.approx(decode["excess_ratios"]["measured"])
    assert set(decode["excess_ratios"]) == {"measured", "corrected", "theoretical"}
    prefill = next(each for each in plain["rates"] if each["device"] == "Raspberry Pi 5" and each["phase"] == "prefill")
    assert prefill["needed_flops_per_s"] / 78.56e9 == pytest.approx(prefill["excess_ratios"]["measured_fp32"])
    (missing,) = (each for each in plain["rates"] if each["architecture"] == "qwen2-0.5b")
    assert missing["needed_bytes_per_s"] is None
    assert "not in the catalogue" in missing["missing"]


def test_suspects_for_programs(plain: dict[str, Any]) -> None:
    """The pair that contradicts itself is named with its ratio."""
    (pair,) = plain["suspects"]
    assert pair == {
        "shorter": "Apple M1 Pro qwen3-0.6b q4_k_m siso decode",
        "longer": "Apple M1 Pro qwen3-0.6b q4_k_m liso decode",
        "ratio": 1.6,
    }


def test_people_read_a_table_and_sentences(capsys: Streams) -> None:
    """Each device is a row; each contradicted one a sentence with the rate, its need and the ceilings."""
    out = printed(published_answer(), capsys)
    for word in ("NVIDIA RTX 3090", "37.05", "ProfInfer", "RUBIK Pi 3", "2.64x", "1.34x"):
        assert word in out
    sentences = [line for line in out.splitlines() if "contradict" in line]
    assert [line.split(":")[0] for line in sentences] == ["Raspberry Pi 5", "Apple M1 Pro"]
    assert "qwen2.5-0.5b q8_0 at 20 tokens/s (decode, siso) needs at least 10.50 GB/s (measured 3.98" in sentences[0]
    assert "corrected 5.97, theoretical 17.10), 2.64 times the measured ceiling" in sentences[0]
    assert "which 16 of 20 rates contradict" in sentences[0]
    assert "Suspect: Apple M1 Pro qwen3-0.6b q4_k_m siso decode has 100 tokens/s, liso with its longer" in out
    assert "200 of 219 rates are held against a measured ceiling. Of 12 the need is not known: llama-2-7b int4, " in out
    assert "Of 7 no measured ceiling is published: AMD Ryzen 9 HX 370 CPU, NVIDIA V100" in out
