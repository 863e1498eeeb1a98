"""Live records of a worker on a board: made here of what its driver pushed there."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.protocol import Hear
from perfsuite.measure.live import Delivery, delay_ns
from perfsuite.records.events import Phase
from perfsuite.records.live import LiveEnd, LiveKernel, LiveLoss, LivePhase, LiveRecord, LiveToken
from perfsuite.units import NS_PER_S

if TYPE_CHECKING:
    from perfsuite.records.opencl_log_tail import OpenClLogTail


#: A ``ps_span``, and its phases in the order of ``ps_phase``.
_SPAN = struct.Struct("=4i2q")
PHASES = (
    *(Phase.LOAD, Phase.PREFILL, Phase.DECODE, Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING, Phase.END_TO_END),
    *(Phase.DRAFT_PREFILL, Phase.DRAFT, Phase.EMBED, Phase.ENCODE_IMAGE),
)


def unpacked_phases(content: bytes | memoryview) -> list[LivePhase]:
    """Return the phases that are in memory one after the other; `ValueError` where they are none."""
    try:
        return [_phase(row) for row in _SPAN.iter_unpack(content)]
    except (struct.error, IndexError) as error:
        raise ValueError(f"{len(content)} bytes are no phases ({error})") from error


def _phase(row: tuple[int, int, int, int, int, int]) -> LivePhase:
    phase, repetition, token, n_tokens, start_ns, end_ns = row
    return LivePhase(
        phase=PHASES[phase].value,
        repetition=repetition,
        token=token,
        n_tokens=n_tokens,
        start_ns=start_ns,
        end_ns=end_ns,
    )


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


class BoardRecords:
    """The records of one run, as they come; use `heard_there`."""

    def __init__(self, hear: Hear, folder: Path) -> None:
        self._hear = hear
        self._log = folder / "opencl.log"
        self._tail: OpenClLogTail | None = None
        self._has_log = True
        self._tokens = TokenCounter()
        self._n_phases = self._n_tokens = self._n_kernels = 0
        self._at_ns = 0
        #: When the worker had ended, on the board's clock.
        self.ended_ns: int | None = None

    def take(self, plain: Any) -> None:
        """Take what the program has delivered, and hand on what it comes to."""
        for each in understood("live", self._deliveries, plain):
            self._hear(each)

    def end(self, *, is_complete: bool) -> None:
        """Say that it was the last."""
        at_ns = self._at_ns if self.ended_ns is None else self.ended_ns
        end = LiveEnd(
            end_ns=at_ns,
            is_complete=is_complete,
            n_phases=self._n_phases,
            n_tokens=self._n_tokens,
            n_kernels=self._n_kernels,
        )
        self._hear(Delivery(record=end, arrival_ns=at_ns, delay_ns=None))

    def _deliveries(self, plain: Mapping[str, Any]) -> list[Delivery]:
        self._at_ns, since_ns = int(plain["at_ns"]), int(plain["since_ns"])
        return [
            Delivery(record=each, arrival_ns=self._at_ns, delay_ns=delay_ns(each, self._at_ns, since_ns))
            for each in self._records(plain)
        ]

    def _records(self, plain: Mapping[str, Any]) -> Iterator[LiveRecord]:
        for phase in unpacked_phases(plain["spans"]):
            yield from self._of_phase(phase)
        if plain["n_dropped"]:
            yield LiveLoss(where="queue", n_records=int(plain["n_dropped"]))
        if plain["log"] and self._has_log:
            yield from self._of_log(plain["log"], int(plain["resumed_ns"]))

    def _of_phase(self, phase: LivePhase) -> Iterator[LiveRecord]:
        self._n_phases += 1
        yield phase
        if (token := self._tokens.count(phase)) is not None:
            self._n_tokens += 1
            yield token

    def _of_log(self, piece: bytes, from_ns: int) -> Iterator[LiveKernel | LiveLoss]:
        """Append to the log here what was appended there, and read it as a log of this machine's is followed."""
        from perfsuite.records.opencl_log_tail import OpenClLogTail  # brings NumPy

        self._tail = self._tail or OpenClLogTail(self._log)
        with self._log.open("ab") as log:
            log.write(piece)
        try:
            found = self._tail.read()
        except MeasurementError:
            self._has_log = False
            yield LiveLoss(where="opencl", n_records=None)
            return
        kernels = [each for each in found.kernels if each.enqueue_ns >= from_ns]
        self._n_kernels += len(kernels)
        yield from kernels
        if found.n_lost:
            yield LiveLoss(where="opencl", n_records=found.n_lost)


@contextmanager
def heard_there(hear: Hear | None) -> Iterator[BoardRecords | None]:
    """Give what takes deliveries of a run while it goes on; at the end `hear` gets the record that says so."""
    if hear is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="perfsuite-live-") as folder:
        records = BoardRecords(hear, Path(folder))
        try:
            yield records
        except BaseException as error:
            if isinstance(error, MeasurementError):  # the run was cut off; whatever else ends it ends the hearing, too
                records.end(is_complete=False)
            raise
        records.end(is_complete=True)
