"""The verdict on the linearity of decode's products."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perfsuite.expectation.decode_linearity import LinearityExpectation, ProductSize
from perfsuite.experiments.tracing.judgement import judge_linearity, measured_lines
from perfsuite.records.outcome import Finding, Outcome

SIZES = {"Kcur": 100_000, "Qcur": 300_000, "ffn_up": 900_000, "ffn_out": 900_000, "result_output": 30_000_000}
LAYERS = (0, 1, 2)


def expectation() -> LinearityExpectation:
    """Return products of four sizes in three layers, and one of another type."""
    products = [
        ProductSize(role=role, layer=None if role == "result_output" else layer, type="q8_0", weight_bytes=n_bytes)
        for role, n_bytes in SIZES.items()
        for layer in LAYERS[: 1 if role == "result_output" else 3]
    ]
    odd = ProductSize(role="ffn_moe_logits", layer=0, type="f32", weight_bytes=500_000)
    return LinearityExpectation(products=(*products, odd), working_set_bytes=100_000_000)


def times(slower: Mapping[str, float] | None = None) -> dict[tuple[str, int | None], float]:
    """Return 1 µs and 0.1 ns a byte, times a factor for some roles; the first layer is disturbed."""
    factors = slower or {}
    return {
        (each.role, each.layer): (1_000 + 0.1 * each.weight_bytes)
        * factors.get(each.role, 1.0)
        * (5.0 if each.layer == 0 else 1.0)
        for each in expectation().products
    }


def linearity_judged(slower: Mapping[str, float] | None = None, expected_ns: float | None = 0.05) -> Finding:
    """Judge products; four times the expected slope passes."""
    return judge_linearity(expectation(), times(slower), expected_ns, 4.0)


def test_products_on_a_line_pass() -> None:
    """10 GB/s where 20 are expected and 5 pass; a disturbed layer does not count."""
    finding = linearity_judged()
    assert finding.outcome is Outcome.PASS
    assert "10.0 GB/s, R² 1.000" in finding.reason


def test_the_line_has_the_law_s_slope_and_constant() -> None:
    """1 µs and 0.1 ns a byte come out, of the one type that has enough sizes."""
    (line,) = measured_lines(expectation(), times())
    assert line.type == "q8_0"
    assert (line.fit.slope, line.fit.intercept) == (pytest.approx(0.1), pytest.approx(1_000.0))


@pytest.mark.parametrize(
    ("slower", "expected_ns", "outcome", "told"),
    [
        ({"ffn_out": 3.0}, 0.05, Outcome.SLOW, "above the line by too much: ffn_out"),
        ({}, 0.01, Outcome.SLOW, "100.0 GB/s"),
        ({"result_output": 0.02, "Kcur": 1.2}, 0.05, Outcome.SLOW, ""),
        ({}, None, Outcome.INCONCLUSIVE, "nothing is known of what a byte should cost"),
        ({"ffn_out": 3.0}, None, Outcome.SLOW, "ffn_out"),
    ],
    ids=["a role above it", "slow memory", "no line", "no forecast", "no line and no forecast"],
)
def test_what_is_off_the_line_or_slow_is_told(
    slower: Mapping[str, float], expected_ns: float | None, outcome: Outcome, told: str
) -> None:
    """A role that its size does not explain is named; that there is a line is not that it is the right one."""
    finding = linearity_judged(slower, expected_ns)
    assert finding.outcome is outcome
    assert told in finding.reason


def test_too_few_products_are_invalid() -> None:
    """A trace without the products has no line."""
    assert judge_linearity(expectation(), {("Qcur", 0): 1.0}, 0.05, 4.0).outcome is Outcome.INVALID
