"""``perfsuite trace agree``, with the run replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.experiments.tracing.command_agree import agreement_answer
from perfsuite.experiments.tracing.recorder_agreement import RecorderAgreement, ThreadAccount, TimesAgreement
from perfsuite.records.engine_trace import TraceRecorder
from perfsuite.testing.engine_traces import small_trace
from tests.command_streams import Streams, plain_of, printed

_TIMES = TimesAgreement(name="MUL_MAT", n_operators=422, ebpf_ns=2_020_000, callback_ns=2_000_000)
_FOUND = RecorderAgreement(
    n_evaluations=2,
    n_callback_only=0,
    n_ebpf_only=0,
    n_ebpf=1030,
    n_callback=1030,
    n_different=0,
    first_difference=None,
    total=replace(_TIMES, name=""),
    phases=(),
    ops=(_TIMES,),
    threads=(ThreadAccount(thread=1, own_ns=1_500_000, wait_ns=490_000, graph_ns=2_000_000),),
)


def test_an_agreement_or_a_difference_is_told(capsys: Streams) -> None:
    rows = [" ".join(line.split()) for line in printed(agreement_answer(_FOUND), capsys).splitlines()]
    assert rows[0].startswith("2 evaluations seen by both recorders: the same operators in the same order; 1030 by")
    assert not any("differ" in row for row in rows)
    assert {"MUL_MAT 422 2.02 ms 2.00 ms 1.0100", "all 422 2.02 ms 2.00 ms 1.0100"} <= set(rows)
    assert rows[-1].endswith("99.50 %")
    found = replace(_FOUND, n_callback_only=3, n_different=1, first_difference="evaluation 1, operator 7: ADD, MUL")
    told = printed(agreement_answer(found), capsys)
    assert "not the same operators" in told
    assert "seen by one alone: 3 by the callback, 0 by eBPF" in told
    assert "1 evaluation differ, first: evaluation 1, operator 7: ADD, MUL" in told
    plain = plain_of(agreement_answer(_FOUND))
    assert (plain["schema"], plain["is_same"], plain["threads"][0]["accounted_ratio"]) == (1, True, 0.995)
    assert (plain["total"]["name"], plain["total"]["ratio"]) == ("all", 1.01)


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

    monkeypatch.setattr("perfsuite.experiments.tracing.command_agree.traced_by_both", run)
    monkeypatch.setattr("perfsuite.measure.ebpf_helper.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf")
    return found


def test_the_exit_code_says_whether_recorders_agree(both: dict[str, Any], capsys: Streams) -> None:
    assert main(["trace", "agree", "--buffer", "perf"]) == 0
    assert "the same operators in the same order" in capsys.readouterr().out
    assert both["buffer"] == "perf"
    events = both["outside"].events
    both["outside"] = replace(both["outside"], events=events[~((events["node"] == 1) & (events["thread"] == 0))])
    assert main(["trace", "agree", "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert plain["n_ebpf"] < plain["n_callback"]
    assert plain["first_difference"]
