"""Whether two recorders of one run tell the same, and how ``perfsuite trace agree`` says it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.cli import main
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.experiments.tracing.agreement import recorder_agreement
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, TraceRecorder
from perfsuite.testing.engine_traces import OPERATOR_NS, small_trace
from tests.command_streams import Streams

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


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> dict[str, Any]:
    """Answer with the same trace twice, or with what a test puts in its place."""
    trace = small_trace()
    callback = replace(trace, recorder=TraceRecorder.CALLBACK, events=trace.events[trace.events["thread"] <= 0])
    found: dict[str, Any] = {"inside": callback, "outside": trace}

    def run(plan: Any, recorder: str, ebpf: Any, *where: Any) -> tuple[RecorderTrace, RecorderTrace]:
        assert (recorder, where[-1].is_dir()) == ("callback", True)
        found["buffer"] = ebpf.buffer
        return tuple(RecorderTrace(payload={}, trace=found[side]) for side in ("inside", "outside"))  # type: ignore[return-value]

    monkeypatch.setattr("perfsuite.experiments.tracing.command_ebpf.traced_by_both", run)
    monkeypatch.setattr("perfsuite.measure.ebpf_helper.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf")
    return found


def test_the_exit_code_says_whether_recorders_agree(both: dict[str, Any], capsys: Streams) -> None:
    assert main(["trace", "agree", "--buffer", "perf"]) == 0
    assert "the same operators in the same order" in capsys.readouterr().out
    assert both["buffer"] == "perf"
    events = both["outside"].events
    both["outside"] = replace(both["outside"], events=events[~((events["node"] == 1) & (events["thread"] == 0))])
    assert main(["trace", "agree"]) == 1
    assert "not the same operators" in capsys.readouterr().out
    assert main(["trace", "agree", "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert plain["n_ebpf"] < plain["n_callback"]
    assert plain["first_difference"]
