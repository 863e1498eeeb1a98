"""The Harmonic Quantization score."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import harmonic_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.quantization_score import AccuracyScale, QuantizationRatios, quantization_ratios

RATIOS = st.floats(min_value=1e-3, max_value=1e3)


def ratios(accuracy: float, prefill: float, decode: float) -> QuantizationRatios:
    return QuantizationRatios(accuracy_ratio=accuracy, prefill_ratio=prefill, decode_ratio=decode)


def scored(scale: AccuracyScale, **changes: tuple[float, float]) -> QuantizationRatios:
    """Return the ratios of a quantisation that keeps 0.4 of 0.5, and is 0.8 and 2 times as fast."""
    usual = {"accuracies": (0.5, 0.4), "prefills_s": (4.0, 5.0), "decodes_s": (2.0, 1.0)}
    return quantization_ratios(scale, **{**usual, **changes})


def test_a_score_worked_by_hand() -> None:
    """0.8, 0.8 and 2 give 3 / (1.25 + 1.25 + 0.5) = 1, as an unchanged model has."""
    found = scored(AccuracyScale(reference=0.9))
    assert found.accuracy_ratio == pytest.approx(0.8)
    assert (found.prefill_ratio, found.decode_ratio) == (0.8, 2.0)
    assert found.harmonic_quantization == pytest.approx(1.0)


@given(accuracy=RATIOS, prefill=RATIOS, decode=RATIOS)
def test_it_is_the_harmonic_mean(accuracy: float, prefill: float, decode: float) -> None:
    """No speed makes up for accuracy: three times the least is the most."""
    score = ratios(accuracy, prefill, decode).harmonic_quantization
    assert score == pytest.approx(harmonic_mean([accuracy, prefill, decode]))
    least, most = min(accuracy, prefill, decode), max(accuracy, prefill, decode)
    assert least * (1 - 1e-12) <= score <= min(most, 3 * least) * (1 + 1e-12)


@pytest.mark.parametrize("bad", [0.0, -0.5, math.inf, math.nan])
@pytest.mark.parametrize(
    ("field", "name"), [("accuracy_ratio", "M_a"), ("prefill_ratio", "M_prefill"), ("decode_ratio", "M_decode")]
)
def test_each_ratio_must_be_above_0(field: str, name: str, bad: float) -> None:
    with pytest.raises(PerfsuiteError, match=f"{name} is "):
        _ = replace(ratios(1.0, 1.0, 1.0), **{field: bad}).harmonic_quantization


def test_both_accuracies_are_normalised_alike() -> None:
    """By the reference alone it cancels; above chance 0.5 and 0.4 of four choices are 0.25 and 0.15, or nothing."""
    for reference in (0.6, 0.9):
        assert scored(AccuracyScale(reference=reference)).accuracy_ratio == pytest.approx(0.8)
        assert scored(AccuracyScale(reference=reference, chance=0.25)).accuracy_ratio == pytest.approx(0.6)
    scale = AccuracyScale(reference=0.85, chance=0.25)
    assert [scale.normalised(each) for each in (0.85, 0.25)] == [1.0, 0.0]
    assert scale.normalised(0.1) < 0
    assert scored(scale, accuracies=(0.5, 0.25)).accuracy_ratio == 0.0


@pytest.mark.parametrize(("reference", "chance"), [(0.25, 0.25), (0.2, 0.25), (0.0, 0.0), (1.1, 0.0), (0.5, -0.1)])
def test_a_reference_must_be_better_than_chance(reference: float, chance: float) -> None:
    with pytest.raises(PerfsuiteError, match="expected 0 <= guessing < reference <= 1"):
        AccuracyScale(reference=reference, chance=chance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracies": (0.0, 0.4)}, "the original's normalised accuracy is 0,"),
        ({"prefills_s": (4.0, 0.0)}, "prefill of the quantised model takes 0 s"),
        ({"prefills_s": (-1.0, 5.0)}, "prefill of the original model takes -1 s"),
        ({"decodes_s": (math.inf, 1.0)}, "decode of the original model takes inf s"),
        ({"decodes_s": (2.0, math.nan)}, "decode of the quantised model takes nan s"),
    ],
)
def test_what_cannot_be_divided_by_is_refused(change: dict[str, tuple[float, float]], message: str) -> None:
    with pytest.raises(PerfsuiteError, match=message):
        scored(AccuracyScale(reference=0.9), **change)
