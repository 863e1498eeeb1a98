"""The verdict on decode's products: whether their time lies on a line over the bytes of their weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.expectation.decode_linearity import LinearityExpectation, ProductSize
from perfsuite.records.outcome import Finding, Outcome, foremost
from perfsuite.trace.statistics.operator_statistics import LineFit, fit_line

#: The least of the variance that the line must explain.
LEAST_R_SQUARED = 0.95

#: How far above the line a role may be.
MOST_DEVIATION_RATIO = 0.5

#: Roles that are told by name.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLine:
    """The products with weights of one type."""

    type: str
    fit: LineFit
    #: How far each role is from the line, the furthest above first.
    deviations: tuple[tuple[str, float], ...]


def measured_lines(
    expected: LinearityExpectation, decode_ns: Mapping[tuple[str, int | None], float]
) -> tuple[MeasuredLine, ...]:
    """Fit the roles of each type of weights that has enough sizes, medians over the layers, by relative distances."""
    return tuple(found for kind in expected.types for found in _line(kind, expected.products, decode_ns))


def judge_linearity(
    expected: LinearityExpectation,
    decode_ns: Mapping[tuple[str, int | None], float],
    expected_ns_per_byte: float | None,
    tolerance_ratio: float | None,
) -> Finding:
    """Judge the products of a run.

    SLOW where the line explains less than `LEAST_R_SQUARED`, where a role is more than `MOST_DEVIATION_RATIO` above
    it, or where a byte costs more than the bandwidth allows for times the tolerance. INCONCLUSIVE of a line where
    nothing is known of what a byte should cost. INVALID where no type of weights has enough sizes among the products
    that were recorded. Times are those of a step of decoding, by role and layer.
    """
    lines = measured_lines(expected, decode_ns)
    if not lines:
        return Finding(outcome=Outcome.INVALID, reason="too few products of decoding were recorded for a line")
    limit_ns_per_byte = (
        None if expected_ns_per_byte is None or tolerance_ratio is None else expected_ns_per_byte * tolerance_ratio
    )
    findings = [_judged(line, expected_ns_per_byte, limit_ns_per_byte) for line in lines]
    outcome = foremost(findings).outcome
    return Finding(outcome=outcome, reason="; ".join(each.reason for each in findings if each.outcome is outcome))


def _line(
    kind: str, products: Sequence[ProductSize], decode_ns: Mapping[tuple[str, int | None], float]
) -> Iterator[MeasuredLine]:
    times: dict[tuple[str, int], list[float]] = {}
    for each in products:
        time_ns = decode_ns.get((each.role, each.layer))
        if each.type == kind and time_ns:
            times.setdefault((each.role, each.weight_bytes), []).append(time_ns)
    middle = {key: sorted(found)[len(found) // 2] for key, found in times.items()}
    fit = fit_line([n_bytes for _, n_bytes in middle], list(middle.values()), is_relative=True)
    if fit is not None and len({n_bytes for _, n_bytes in middle}) > 2:
        off = [
            (role, ratio) for (role, _), ratio in zip(middle, fit.deviations_ratio, strict=True) if ratio is not None
        ]
        yield MeasuredLine(type=kind, fit=fit, deviations=tuple(sorted(off, key=lambda each: (-each[1], each[0]))))


def _judged(line: MeasuredLine, expected_ns_per_byte: float | None, limit_ns_per_byte: float | None) -> Finding:
    fit, above = line.fit, [each for each in line.deviations if each[1] > MOST_DEVIATION_RATIO]
    rate = f"{1.0 / fit.slope:.1f} GB/s" if fit.slope > 0 else "no slope"
    r_squared = 0.0 if fit.r_squared is None else fit.r_squared
    text = f"{line.type}: {fit.n_points} roles, {rate}, R² {r_squared:.3f}, furthest {_named(line.deviations[:1])}"
    if above:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; above the line by too much: {_named(above)}")
    if r_squared < LEAST_R_SQUARED:
        return Finding(outcome=Outcome.SLOW, reason=f"{text}; no line, expected R² of {LEAST_R_SQUARED} and more")
    if limit_ns_per_byte is None or expected_ns_per_byte is None:
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; nothing is known of what a byte should cost")
    text += f", expected {1.0 / expected_ns_per_byte:.1f} GB/s and {1.0 / limit_ns_per_byte:.1f} GB/s at least"
    return Finding(outcome=Outcome.SLOW if fit.slope > limit_ns_per_byte else Outcome.PASS, reason=text)


def _named(deviations: Sequence[tuple[str, float]]) -> str:
    shown = [f"{role} {ratio:+.0%}" for role, ratio in deviations[:_MOST_NAMED]]
    more = len(deviations) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
