"""Whether two recorders of one run tell the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.tracing.recorder_agreement import recorder_agreement
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, TraceRecorder
from perfsuite.testing.engine_traces import OPERATOR_NS, engine_trace, event, small_trace

EBPF = small_trace(3)


def callback_of(trace: EngineTrace) -> EngineTrace:
    """Return what the callback recorder would have seen: thread 0's ends, and phases."""
    operators = trace.of(EventKind.OPERATOR)
    own = operators[operators["thread"] == 0].copy()
    follows = own["evaluation"][1:] == own["evaluation"][:-1]
    own["start_ns"][1:][follows] = own["end_ns"][:-1][follows]
    own["flags"] = EventFlag.START_DERIVED
    tokens = trace.of(EventKind.TOKEN).copy()
    tokens["kind"], tokens["value"] = EventKind.PHASE, np.minimum(tokens["iteration"], 1)
    return replace(
        trace,
        recorder=TraceRecorder.CALLBACK,
        events=np.concatenate([trace.of(EventKind.GRAPH), tokens, own]),
        phases=("prefill", "decode"),
        threads=trace.threads[:1],
    )


def without(trace: EngineTrace, chosen: Events) -> EngineTrace:
    return replace(trace, events=trace.events[~np.isin(trace.events, chosen)])


def test_the_same_run_agrees_and_threads_account_for_its_graphs() -> None:
    """Own time and waiting time of each thread make up the graphs from its first operator to the end."""
    found = recorder_agreement(EBPF, callback_of(EBPF))
    assert found.is_same
    assert (found.n_evaluations, found.n_ebpf, found.n_callback, found.first_difference) == (3, 12, 12, None)
    assert found.total.ratio == 1.0
    assert [(each.name, each.n_operators, each.ratio) for each in found.phases] == [("prefill", 4, 1), ("decode", 8, 1)]
    assert [(each.name, each.n_operators) for each in found.ops] == [("ADD", 3), ("MUL_MAT", 6), ("RMS_NORM", 3)]
    assert [each.thread for each in found.threads] == [0, 1]
    assert [each.accounted_ratio for each in found.threads] == [1.0, 1.0]
    assert found.threads[0].own_ns == 3 * 4 * OPERATOR_NS


def test_a_missing_operator_is_found_and_not_accounted_for() -> None:
    """What thread 0 lacks makes the evaluation another one, and the time behind the gap counts for nothing."""
    operators = EBPF.of(EventKind.OPERATOR)
    lost = operators[(operators["evaluation"] == 1) & (operators["thread"] == 0) & (operators["node"] == 2)]
    found = recorder_agreement(without(EBPF, lost), callback_of(EBPF))
    assert not found.is_same
    assert found.n_different == 1
    assert found.first_difference == (
        "evaluation 1: operator 2 is sum-0 (ADD [64, 1, 1, 1]) of the eBPF recorder, Kcur-0 (MUL_MAT [64, 1, 1, 1]) of "
        "the callback recorder"
    )
    assert found.threads[0].accounted_ratio is not None
    assert found.threads[0].accounted_ratio < 1.0
    assert found.threads[1].accounted_ratio == 1.0
    assert found.total.n_operators == 8


def test_what_either_recorder_lacks_is_a_difference() -> None:
    operators = EBPF.of(EventKind.OPERATOR)
    lost = operators[(operators["evaluation"] == 2) & (operators["node"] == 3)]
    found = recorder_agreement(without(EBPF, lost), callback_of(EBPF))
    assert found.first_difference == "evaluation 2: 3 operators of the eBPF recorder, 4 of the callback recorder"
    short = small_trace(2)
    for ebpf, other, missed in ((EBPF, short, (0, 1)), (short, EBPF, (1, 0))):
        found = recorder_agreement(ebpf, callback_of(other))
        assert (found.n_callback_only, found.n_ebpf_only, found.is_same) == (*missed, False)


def test_times_show_in_the_ratio_where_their_ends_are_known() -> None:
    events = EBPF.events.copy()
    last = (events["kind"] == EventKind.OPERATOR) & (events["node"] == 3) & (events["iteration"] > 0)
    events["end_ns"][last] += 5000
    found = recorder_agreement(replace(EBPF, events=events), callback_of(EBPF))
    assert found.is_same
    assert [each.ratio for each in found.phases] == [1.0, pytest.approx(60_000 / 55_000)]
    assert {each.name for each in found.ops if each.ratio != 1.0} == {"ADD"}
    events = EBPF.events.copy()
    cut = (events["kind"] == EventKind.OPERATOR) & (events["iteration"] == 0) & (events["node"] == 3)
    events["end_ns"][cut] = NOTHING
    found = recorder_agreement(replace(EBPF, events=events), callback_of(EBPF))
    assert (found.n_evaluations, found.total.n_operators, found.total.ratio) == (3, 8, 1.0)


def test_traces_without_operators_are_refused() -> None:
    bare = engine_trace([event(EventKind.TOKEN, 0, 10)])
    with pytest.raises(MeasurementError, match="the ebpf recorder has no operators, or no graphs, to compare"):
        recorder_agreement(bare, callback_of(EBPF))
