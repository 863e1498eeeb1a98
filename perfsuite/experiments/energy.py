"""The energy of a token, by phase, from the samples that a board took of its power sensor while a replicate ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from perfsuite.measure.board.watching import DEVICE_SAMPLES
from perfsuite.records.events import EngineRecord, Phase

_PHASES = (Phase.PREFILL, Phase.DECODE)


def joules_by_phase(payloads: Sequence[Mapping[str, Any]], records: Sequence[EngineRecord]) -> dict[str, float | None]:
    """Return, by phase, the energy of a token in the middle replicate, J.

    None where the phase is too short for the sensor; nothing at all where the board has none. A phase is what lies
    between its first and its last moment in a repetition, what the driver does between tokens included.
    """
    from perfsuite.device.stability.energy import joules_per_token  # only whoever measures needs the sensors
    from perfsuite.device.stability.sampler import Sample

    found: dict[str, list[float | None]] = defaultdict(list)
    for payload, record in zip(payloads, records, strict=True):
        samples = [Sample(**each) for each in payload.get(DEVICE_SAMPLES, ())]
        if not any(each.power_watts is not None or each.counted_joules is not None for each in samples):
            continue
        for phase in _PHASES:
            intervals, n_tokens = _intervals(record, phase)
            if intervals:
                found[phase.value].append(joules_per_token(samples, intervals, n_tokens))
    return {phase: _middle(energies) for phase, energies in found.items()}


def _intervals(record: EngineRecord, phase: Phase) -> tuple[list[tuple[int, int]], int]:
    """Return from when to when each repetition was in the phase, and the tokens of all of them."""
    spans = [span for span in record.spans if span.phase is phase]
    repetitions = dict.fromkeys(span.repetition for span in spans)
    by_repetition = [[span for span in spans if span.repetition == each] for each in repetitions]
    intervals = [(min(s.start_ns for s in each), max(s.end_ns for s in each)) for each in by_repetition]
    return intervals, sum(span.n_tokens for span in spans)


def _middle(energies: Sequence[float | None]) -> float | None:
    known = [each for each in energies if each is not None]
    return median(known) if known else None
