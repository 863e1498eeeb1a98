"""Turns with and without probes in one process."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from perfsuite.measure.ebpf_run import alternate, paired_sums
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.trace_levels import TraceLevel

_LEVELS = TraceLevel.TOKEN | TraceLevel.GRAPH


def _alternate(n_pairs: int) -> tuple[tuple[bool, ...], list[Any]]:
    said: list[Any] = []
    engine: Any = SimpleNamespace(warm_up=lambda plan: said.append(("warm up", plan.n_prompt)))
    recording: Any = SimpleNamespace(switch=said.append)
    plan = LlamaPlan(
        gguf_path="m.gguf", library_dir="/l", engine_build_id="1", cache_dir="/c", n_threads=2, n_prompt=64, n_gen=8
    )
    order, run = random.Random(1), (lambda: said.append("run"))
    return alternate(engine, recording, plan, _LEVELS, n_pairs, order=order, run=run), said


def test_each_pair_has_one_turn_of_either_kind() -> None:
    """Which comes first is drawn, so that a machine that warms up slows neither side."""
    sides, _ = _alternate(40)
    pairs = list(zip(sides[::2], sides[1::2], strict=True))
    assert set(pairs) == {(False, True), (True, False)}


def test_a_turn_begins_with_the_switch_and_a_token_that_is_not_counted() -> None:
    """The first token meets breakpoints that nobody has hit before."""
    sides, said = _alternate(1)
    expected: list[Any] = []
    for is_traced in sides:
        expected += [_LEVELS if is_traced else TraceLevel(0), ("warm up", 1), "run"]
    assert said == expected


def _span(phase: Phase, repetition: int, duration_ns: int) -> Span:
    return Span(phase=phase, repetition=repetition, token=0, n_tokens=1, start_ns=1000, end_ns=1000 + duration_ns)


def test_the_steps_of_a_decode_count_together() -> None:
    """What hits one step of many is part of the cost."""
    spans = [_span(Phase.PREFILL, turn, 10 + turn) for turn in range(4)]
    spans += [_span(Phase.DECODE, turn, ns) for turn in range(4) for ns in (5, 7, turn)]
    record = EngineRecord(engine_version="", spans=tuple(spans), graphs=(), n_dropped=0)
    sums = paired_sums(record, (False, True, True, False))
    assert sums == {Phase.PREFILL: ([10, 13], [11, 12]), Phase.DECODE: ([12, 15], [13, 14])}
