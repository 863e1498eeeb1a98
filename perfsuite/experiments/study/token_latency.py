"""Seconds of an input token and of an output token, over the prompts of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from perfsuite.errors import PerfsuiteError
from perfsuite.units import NS_PER_S

#: What is shorter or longer is no token's time, but a mistake that ratios of latencies would overflow with.
LEAST_S, MOST_S = 1e-15, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLatency:
    """What a token takes, one value a process."""

    prefill_samples_s: tuple[float, ...]
    decode_samples_s: tuple[float, ...]
    #: ``measured``, ``given``, or the file that it was taken from.
    source: str

    def __post_init__(self) -> None:
        """Refuse what is no latency."""
        for samples in (self.prefill_samples_s, self.decode_samples_s):
            if not samples or not all(LEAST_S <= each <= MOST_S for each in samples):
                raise PerfsuiteError(
                    f"latency from {self.source}: samples are {str(samples)[:80]}, expected times above 0: "
                    f"{LEAST_S:g} s to {MOST_S:g} s"
                )

    @property
    def prefill_s_per_token(self) -> float:
        """Seconds of an input token: the median process."""
        return median(self.prefill_samples_s)

    @property
    def decode_s_per_token(self) -> float:
        """Seconds of an output token: the median process."""
        return median(self.decode_samples_s)


def over_prompts(
    prefill_ns: Mapping[int, Sequence[int]],
    decode_ns: Mapping[int, Sequence[int]],
    counts: Mapping[int, int],
    *,
    source: str,
) -> TokenLatency:
    """Return the latency over prompts, of which `counts` tells how many have each length.

    A process of each length makes one sample. With c prompts of n tokens, whose prefill takes T(n) and a token after it
    t(n), an input token takes sum c T / sum c n and an output token sum c t / sum c: every prompt counts once, and each
    generates as many tokens. Times are by length of the prompt, the samples of its processes: lengths may have
    different numbers of them, of which the fewest count.
    """
    n_samples = min(len(samples) for times in (prefill_ns, decode_ns) for samples in times.values())
    n_tokens, n_prompts = sum(n * count for n, count in counts.items()), sum(counts.values())
    prefill, decode = (
        [sum(count * times[n][at] for n, count in counts.items()) / NS_PER_S for at in range(n_samples)]
        for times in (prefill_ns, decode_ns)
    )
    return TokenLatency(
        prefill_samples_s=tuple(each / n_tokens for each in prefill),
        decode_samples_s=tuple(each / n_prompts for each in decode),
        source=source,
    )
