"""``perfsuite trace agree``, with the run replaced."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.records.engine_trace import TraceRecorder
from perfsuite.testing.engine_traces import small_trace
from tests.command_streams import Refused, Streams


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Answer with the same trace twice, or with what a test puts in its place."""
    trace = small_trace()
    callback = replace(trace, recorder=TraceRecorder.CALLBACK, events=trace.events[trace.events["thread"] <= 0])
    found: dict[str, Any] = {"inside": callback, "outside": trace}

    def run(plan: Any, recorder: str, ebpf: Any, folder: Path) -> tuple[RecorderTrace, RecorderTrace]:
        assert (recorder, folder.is_dir()) == ("callback", True)
        found["buffer"] = ebpf.buffer
        return tuple(RecorderTrace(payload={}, trace=found[side]) for side in ("inside", "outside"))  # type: ignore[return-value]

    monkeypatch.setattr("perfsuite.experiments.tracing.command_agree.traced_by_both", run)
    monkeypatch.setattr(
        "perfsuite.experiments.tracing.command_run.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf"
    )
    monkeypatch.setattr("perfsuite.cli.opencl_run.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return found


def test_agreement_is_told(both: dict[str, Any], capsys: Streams) -> None:
    """The exit code is 0, and the first line says what was the same."""
    assert main(["trace", "agree", "--buffer", "perf"]) == 0
    assert "the same operators in the same order" in capsys.readouterr().out
    assert both["buffer"] == "perf"


def test_a_difference_has_an_exit_code_of_its_own(both: dict[str, Any], capsys: Streams) -> None:
    """A recorder that missed an operator is no agreement; JSON says how many each saw."""
    events = both["outside"].events
    both["outside"] = replace(both["outside"], events=events[~((events["node"] == 1) & (events["thread"] == 0))])
    assert main(["trace", "agree", "--json"]) == 1
    plain = json.loads(capsys.readouterr().out)
    assert plain["n_ebpf"] < plain["n_callback"]
    assert plain["first_difference"]


@pytest.mark.usefixtures("both")
def test_a_wrong_number_of_threads_is_one_line(refused: Refused) -> None:
    """It is told before anything runs."""
    assert "--threads=0: expected 1 or more" in refused(["trace", "agree", "--threads", "0"])
