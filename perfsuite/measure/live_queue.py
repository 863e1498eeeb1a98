"""Phases as the driver writes them into the memory of its queue."""

from __future__ import annotations

import struct

from perfsuite.records.events import Phase
from perfsuite.records.live import LivePhase

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
