"""``perfsuite trace --model``: runs of the suite's own, with the recorders replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.recorder_traces import RecorderTrace
from perfsuite.experiments.tracing import command_program as module
from perfsuite.experiments.tracing.command_run import summarize_trace, summary_lines
from perfsuite.measure.board.beside import N_REFAULTS, Beside
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.engine_trace import EventFlag, EventKind
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import engine_trace, event, small_trace
from tests.command_streams import Refused, Streams


class _Ended:
    """A recorder that has ended before its process, with a note why."""

    def __init__(self) -> None:
        self._notes = ["counter cycles is left out"]

    def has_ended(self) -> bool:
        self._notes.append("process 1 has executed another program")
        return True

    def notes(self) -> tuple[str, ...]:
        return tuple(self._notes)


def test_a_process_that_has_ended_is_told_and_leaves_no_folder(tmp_path: Path, refused: Refused) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    told = refused(["trace", "--pid", str(ended.pid), "--output", str(tmp_path / "run")])
    assert f"process {ended.pid}: is not there, or has ended" in told
    assert not (tmp_path / "run").exists()


def test_a_recorder_that_ends_by_itself_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """Where the disk is full or the program is another, the process may live for days; each note is reported once."""

    @contextmanager
    def followed(*_: object, **__: object) -> Iterator[_Ended]:
        yield _Ended()

    monkeypatch.setattr(module, "followed", followed)
    monkeypatch.setattr(module, "await_engine", lambda *_, **__: True)
    monkeypatch.setattr(module, "find_helper", lambda _: Path("helper"))
    monkeypatch.setattr(module, "finish_recording", lambda _: None)
    monkeypatch.setattr(module, "tell", lambda *_: None)
    assert main(["trace", "--pid", str(os.getpid()), "--output", str(tmp_path / "run")]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "follow" not in line]
    assert told == ["trace: counter cycles is left out", "trace: process 1 has executed another program"]


@dataclass
class Recorders:
    engine: list[tuple[LlamaPlan, str]] = field(default_factory=list)
    ebpf: list[tuple[LlamaPlan, EbpfPlan]] = field(default_factory=list)
    besides: list[Beside | None] = field(default_factory=list)
    n_refaults: int | None = None

    def by_engine(self, plan: LlamaPlan, recorder: str, _: Board, folder: Path, *, beside: Beside) -> RecorderTrace:
        self.engine.append((plan, recorder))
        return self._answer(folder, beside)

    def by_ebpf(self, plan: LlamaPlan, ebpf: EbpfPlan, _: Board, folder: Path, *, beside: Beside) -> RecorderTrace:
        """Answer for the eBPF recorder, which leaves a counter out."""
        self.ebpf.append((plan, ebpf))
        return self._answer(folder, beside)

    def _answer(self, folder: Path, beside: Beside) -> RecorderTrace:
        assert folder.is_dir()
        self.besides.append(beside)
        refaults = {} if self.n_refaults is None else {N_REFAULTS: self.n_refaults}
        notes = {"ebpf_notes": ["counter cycles: this machine has none"]}
        return RecorderTrace(payload={**notes, **refaults}, trace=small_trace())


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> Recorders:
    found, command = Recorders(), "perfsuite.experiments.tracing.command_run"
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(f"{command}.traced_by_engine", found.by_engine)
    monkeypatch.setattr(f"{command}.traced_by_ebpf", found.by_ebpf)
    monkeypatch.setattr("perfsuite.measure.ebpf_helper.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf")
    monkeypatch.chdir(tmp_path)
    return found


def _trace(*arguments: str) -> int:
    return main(["trace", "--model", "smollm2-135m-l2-q8_0", "--scenario", "p8-g4", *arguments])


def test_without_privileges_the_preload_recorder_is_used(recorders: Recorders, capsys: Streams) -> None:
    assert _trace("--threads", "2") == 0
    ((plan, recorder),) = recorders.engine
    assert (recorder, plan.recorder, plan.n_threads, plan.n_gen) == ("preload", "none", 2, 4)
    out = capsys.readouterr().out
    assert "3 tokens" in out
    assert "perfsuite trace view statistics .perfsuite/traces/" in out


def test_levels_ask_for_ebpf(recorders: Recorders, capsys: Streams) -> None:
    assert _trace("--trace", "counters,threads", "--counters", "cycles", "--trace-floor", "5", "--buffer", "perf") == 0
    ((_, ebpf),) = recorders.ebpf
    wanted = TraceLevel.COUNTERS | TraceLevel.THREADS
    assert TraceLevel(ebpf.levels) & wanted == wanted
    assert (ebpf.counters, ebpf.floor_tokens_per_s, ebpf.buffer) == (("cycles",), 5.0, "perf")
    assert "trace: counter cycles: this machine has none" in capsys.readouterr().err


def test_the_memory_of_the_worker_is_limited(recorders: Recorders, capsys: Streams) -> None:
    recorders.n_refaults = 7
    for text in ("1000000000", "1.5G"):
        assert _trace("--memory-limit", text) == 0
        assert "trace: 7 pages of files were read again" in capsys.readouterr().err
    assert recorders.besides == [Beside(memory_limit_bytes=n_bytes) for n_bytes in (10**9, 3 << 29)]


def _told(**fields: object) -> str:
    return "\n".join(summary_lines(summarize_trace(small_trace(3, **fields))))


def test_the_speed_of_decoding_and_changes_of_levels_are_told() -> None:
    """It is the median of the calls for one token; a reader knows why operators are missing from a moment on."""
    tokens = [event(EventKind.TOKEN, at * 100_000_000, at * 100_000_000 + 50_000_000, value=1) for at in range(3)]
    prompt = event(EventKind.TOKEN, 400_000_000, 900_000_000, value=64)
    cut = event(EventKind.TOKEN, 900_000_000, 999_000_000, value=1, flags=EventFlag.CUT)
    summary = summarize_trace(engine_trace([*tokens, prompt, cut]))
    assert (summary.decode_step_ns, summary.n_decode_steps) == (50_000_000, 3)
    assert "decode: 50.0 ms a token, 20.0 tokens/s (median of 3 steps)" in "\n".join(summary_lines(summary))
    begin = event(EventKind.TOKEN, 0, 10_000_000, value=1)
    switch = event(EventKind.LEVELS, 30_000_000, 30_000_000, value=int(TraceLevel.TOKEN))
    summary = summarize_trace(engine_trace([begin, switch]))
    assert "levels: token from 30.0 ms on" in "\n".join(summary_lines(summary))


def test_what_makes_a_trace_doubtful_is_told() -> None:
    """Lost events, a cut, and any other problem have a line each; an empty trace has one too."""
    told = _told(n_lost=7, cut="killed at byte 9", problems=("a clock jumped",))
    assert "lost: 7 events found no room" in told
    assert "cut: killed at byte 9" in told
    assert "doubtful: a clock jumped" in told
    assert "lost" not in _told()
    summary = summarize_trace(engine_trace([]))
    assert next(iter(summary_lines(summary))).startswith("process ")
    assert "no event" in "\n".join(summary_lines(summary))
    assert summary.n_by_kind == {}
