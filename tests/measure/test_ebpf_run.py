"""Turns with and without probes in one process."""

from __future__ import annotations

import random

from perfsuite.measure.ebpf import drawn_sides, paired_sums
from perfsuite.records.events import EngineRecord, Phase, Span


def test_each_pair_has_one_turn_of_either_kind() -> None:
    """Which comes first is drawn, so that a machine that warms up slows neither side."""
    sides = drawn_sides(40, random.Random(1))
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    assert set(pairs) == {(False, True), (True, False)}


def _span(phase: Phase, repetition: int, duration_ns: int) -> Span:
    return Span(phase=phase, repetition=repetition, token=0, n_tokens=1, start_ns=1000, end_ns=1000 + duration_ns)


def test_the_steps_of_a_decode_count_together() -> None:
    """What hits one step of many is part of the cost."""
    spans = [_span(Phase.PREFILL, turn, 10 + turn) for turn in range(4)]
    spans += [_span(Phase.DECODE, turn, ns) for turn in range(4) for ns in (5, 7, turn)]
    record = EngineRecord(engine_version="", spans=tuple(spans), graphs=(), n_dropped=0)
    sums = paired_sums(record, (False, True, True, False))
    assert sums == {Phase.PREFILL: ([10, 13], [11, 12]), Phase.DECODE: ([12, 15], [13, 14])}
