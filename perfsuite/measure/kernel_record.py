"""What measuring one kernel leaves: its error against the reference, and four timestamps a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import rebuilt, to_plain

_STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRecord:
    """The timed launches of one kernel case in one process.

    The timestamps are OpenCL's profiling ones, in ns of the device's own clock, one entry a launch in the order of the
    launches. A kernel whose output was wrong has no launches: how fast it is wrong is of no use.
    """

    #: The case that was measured.
    case_id: str
    #: ``||out - reference|| / ||reference||`` of the verified launch; infinite when a value is missing or not finite.
    error_norm: float
    #: The largest error norm that counts as correct.
    tolerance: float
    #: When the host put each launch into its queue.
    queued_ns: tuple[int, ...]
    #: When the host handed each launch to the device.
    submit_ns: tuple[int, ...]
    #: When each launch began on the device.
    start_ns: tuple[int, ...]
    #: When each launch ended on the device.
    end_ns: tuple[int, ...]
    #: Launches of a round, of which there may be several; 0 is one round of all.
    n_per_round: int = 0

    @property
    def is_correct(self) -> bool:
        """Whether the kernel computed what it should; NaN never is."""
        return self.error_norm <= self.tolerance

    @property
    def lengths_ns(self) -> tuple[int | None, ...]:
        """END - START of each launch; `None` where either is missing, or they cannot both be right.

        Each launch is waited for before the next, so that none begins before the one before it has ended.
        """
        ends = (0, *self.end_ns)
        rows = zip(ends, self.start_ns, self.end_ns, strict=False)
        return tuple(end - start if start and start >= before and end >= start else None for before, start, end in rows)

    @property
    def rounds_ns(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of each round that are known and not 0."""
        lengths = self.lengths_ns
        n_launches = self.n_per_round or len(lengths) or 1
        rounds = (lengths[first : first + n_launches] for first in range(0, len(lengths), n_launches))
        return tuple(tuple(length for length in each if length) for each in rounds)

    @property
    def durations_ns(self) -> tuple[int, ...]:
        """The lengths that are known and not 0."""
        return tuple(length for length in self.lengths_ns if length)

    def to_plain(self) -> dict[str, Any]:
        """Return the record as a dict of strings, numbers and tuples."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> KernelRecord:
        """Return the record that `to_plain` made; `MeasurementError` when it is no such thing."""
        try:
            record = rebuilt(plain, cls)
        except ValueError as error:
            raise MeasurementError(f"kernel record: {error} in {sorted(plain)}; expected what to_plain wrote") from None
        counts = {name: len(getattr(record, name)) for name in _STAMPS}
        if len(set(counts.values())) != 1:
            told = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise MeasurementError(f"{record.case_id}: {told}; expected one of each a launch, measure again")
        return record
