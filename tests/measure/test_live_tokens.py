"""Tokens out of phases."""

from __future__ import annotations

from perfsuite.measure.live_tokens import TokenCounter
from perfsuite.records.live import LivePhase, LiveToken


def test_tokens_are_counted_by_repetition() -> None:
    """The rate counts from the begin of the repetition's first decode step; other phases are no tokens."""
    counter = TokenCounter()

    def phase(repetition: int, start_ns: int, end_ns: int, name: str = "decode") -> LivePhase:
        return LivePhase(phase=name, repetition=repetition, token=9, n_tokens=1, start_ns=start_ns, end_ns=end_ns)

    assert counter.count(phase(0, 0, 1, "prefill")) is None
    counter.count(phase(0, 10**9, 2 * 10**9))
    second = counter.count(phase(0, 3 * 10**9, 5 * 10**9))
    other = counter.count(phase(1, 7 * 10**9, 8 * 10**9))
    assert second == LiveToken(repetition=0, step=1, token=9, latency_ns=2 * 10**9, end_ns=5 * 10**9, tokens_per_s=0.5)
    assert other is not None
    assert (other.step, other.tokens_per_s) == (0, 1.0)
