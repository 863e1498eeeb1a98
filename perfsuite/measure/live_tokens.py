"""Token records out of the phases of a run, as they come."""

from __future__ import annotations

from perfsuite.records.events import Phase
from perfsuite.records.live import LivePhase, LiveToken
from perfsuite.units import NS_PER_S


class TokenCounter:
    """Makes token records out of decode steps."""

    def __init__(self) -> None:
        self._repetition = -1
        self._n_tokens = 0
        self._first_start_ns = 0

    def count(self, phase: LivePhase) -> LiveToken | None:
        """Return the record of the token that a phase decoded, if it is a decode step."""
        if phase.phase != Phase.DECODE.value:
            return None
        if phase.repetition != self._repetition:
            self._repetition, self._n_tokens, self._first_start_ns = phase.repetition, 0, phase.start_ns
        self._n_tokens += 1
        spent_ns = max(1, phase.end_ns - self._first_start_ns)
        return LiveToken(
            repetition=phase.repetition,
            step=self._n_tokens - 1,
            token=phase.token,
            latency_ns=phase.end_ns - phase.start_ns,
            end_ns=phase.end_ns,
            tokens_per_s=self._n_tokens * NS_PER_S / spent_ns,
        )
