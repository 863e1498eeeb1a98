"""H_Q, the Harmonic Quantization score: what a quantisation gains in speed and keeps in accuracy, as one number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyScale:
    """What accuracies of a task are normalised by: alike for every model, original or quantised."""

    #: Accuracy of the reference, which becomes 1.
    reference: float
    #: Accuracy of guessing, which becomes 0: 0 normalises by the reference alone, 0.25 suits four choices.
    chance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a reference that is no better than guessing."""
        if not 0.0 <= self.chance < self.reference <= 1.0:
            raise PerfsuiteError(
                f"accuracy of the reference is {self.reference:g} and of guessing {self.chance:g}; expected "
                "0 <= guessing < reference <= 1"
            )

    def normalised(self, accuracy: float) -> float:
        """Return (accuracy - chance) / (reference - chance)."""
        return (accuracy - self.chance) / (self.reference - self.chance)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationRatios:
    """The three parts of H_Q; each is 1 where nothing changes, and above it where the quantised model is better."""

    #: M_a: accuracy of the quantised model over that of the original, both normalised alike.
    accuracy_ratio: float
    #: M_prefill and M_decode: latency of the original over that of the quantised model.
    prefill_ratio: float
    decode_ratio: float

    @property
    def harmonic_quantization(self) -> float:
        """H_Q = 3 / (1/M_a + 1/M_prefill + 1/M_decode), the harmonic mean of the three.

        It is below three times the least of them, so that no speed makes up for accuracy that is lost.

        Raises PerfsuiteError: one of them is not above 0, or not finite.

        *Source*: lm-Meter, its Harmonic Quantization score of a task.
        """
        parts = {"M_a": self.accuracy_ratio, "M_prefill": self.prefill_ratio, "M_decode": self.decode_ratio}
        for name, ratio in parts.items():
            if not 0.0 < ratio < math.inf:
                raise PerfsuiteError(f"H_Q: {name} is {ratio:g}, expected a finite number above 0")
        return len(parts) / math.fsum(1.0 / ratio for ratio in parts.values())


def quantization_ratios(
    scale: AccuracyScale,
    *,
    accuracies: tuple[float, float],
    prefills_s: tuple[float, float],
    decodes_s: tuple[float, float],
) -> QuantizationRatios:
    """Return M_a, M_prefill and M_decode of a quantised model; times are of one token each, or of one workload.

    The first of two is always the original's. Without a chance in the scale the reference cancels out of M_a.

    Raises PerfsuiteError: a time is not above 0, or the original is no better than guessing.
    """
    original, quantized = map(scale.normalised, accuracies)
    if not 0.0 < original < math.inf:
        raise PerfsuiteError(f"H_Q: the original's normalised accuracy is {original:g}, expected a number above 0")
    for phase, times_s in (("prefill", prefills_s), ("decode", decodes_s)):
        for whose, time_s in zip(("original", "quantised"), times_s, strict=True):
            if not 0.0 < time_s < math.inf:
                raise PerfsuiteError(f"H_Q: {phase} of the {whose} model takes {time_s:g} s, expected a time above 0")
    return QuantizationRatios(
        accuracy_ratio=quantized / original,
        prefill_ratio=prefills_s[0] / prefills_s[1],
        decode_ratio=decodes_s[0] / decodes_s[1],
    )
