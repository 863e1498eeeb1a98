"""A timer that replays times measured elsewhere, so that pytest-benchmark's formats work on every case."""

from __future__ import annotations

from collections.abc import Sequence


class ReplayClock:
    """A timer in seconds whose successive pairs of readings are apart by the samples given.

    pytest-benchmark reads its timer before and after each round; with one iteration a round, round i lasts sample i.
    """

    def __init__(self, samples_ns: Sequence[int]) -> None:
        self._samples_ns = tuple(samples_ns)
        self._n_readings = 0
        self._now_ns = 0

    def __call__(self) -> float:
        """Return the current reading, s."""
        round_index, is_end = divmod(self._n_readings, 2)
        if is_end and round_index < len(self._samples_ns):
            self._now_ns += self._samples_ns[round_index]
        self._n_readings += 1
        return self._now_ns / 1e9
