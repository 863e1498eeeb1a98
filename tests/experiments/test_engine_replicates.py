"""What a token costs, from the samples of a power sensor."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from perfsuite.device.stability.sampler import Sample
from perfsuite.experiments.engine_replicates import joules_by_phase
from perfsuite.measure.board.watching import DEVICE_SAMPLES
from perfsuite.records.events import EngineRecord, Phase, Span

_S = 10**9


def samples(watts: float | None, seconds: int) -> dict[str, Any]:
    """A payload whose board drew so much, twice a second."""
    none = dict.fromkeys(("temperature_celsius", "cpu_mhz", "is_throttled", "n_throttle_events", "counted_joules"))
    taken = [Sample(at_ns=at * _S // 2, power_watts=watts, **none) for at in range(2 * seconds + 1)]
    return {DEVICE_SAMPLES: [asdict(each) for each in taken]}


def span(phase: Phase, start_ns: int, end_ns: int, *, n_tokens: int = 1) -> Span:
    """A stretch of a phase."""
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def test_a_phase_is_integrated_over_its_repetition(stored_record: EngineRecord) -> None:
    """Four tokens in two seconds at 10 W are 5 J each; a prefill of 10 ms is too short to tell."""
    decode = [span(Phase.DECODE, _S + at * _S // 2, _S + (at + 1) * _S // 2) for at in range(4)]
    spans = (span(Phase.PREFILL, 10**7, 2 * 10**7, n_tokens=64), *decode)
    found = joules_by_phase([samples(10.0, 5)], [replace(stored_record, spans=spans)])
    assert found["decode"] == pytest.approx(5.0)
    assert found["prefill"] is None


def test_the_middle_replicate_counts(stored_record: EngineRecord) -> None:
    """Of three replicates it is the median."""
    decode = replace(stored_record, spans=(span(Phase.DECODE, _S, 3 * _S),))
    found = joules_by_phase([samples(watts, 5) for watts in (1.0, 2.0, 30.0)], [decode] * 3)
    assert found == {"decode": pytest.approx(4.0)}


def test_a_board_without_a_sensor_tells_nothing(stored_record: EngineRecord) -> None:
    """Neither None nor 0 stands for what nobody can measure."""
    decode = replace(stored_record, spans=(span(Phase.DECODE, _S, 3 * _S),))
    assert joules_by_phase([samples(None, 5), {}], [decode] * 2) == {}
