"""``perfsuite trace --model``: runs of the suite's own, with the recorders replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfsuite.cli import main
from perfsuite.errors import MeasurementError
from perfsuite.experiments.recorder_traces import Observe, RecorderTrace
from perfsuite.experiments.tracing import command_program as module
from perfsuite.measure.memory_limit import MemoryGroup
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import small_trace
from tests.command_streams import Refused, Streams


class _Ended:
    """A recorder that has ended before its process, with a note why."""

    def __init__(self) -> None:
        self._notes = ["counter cycles is left out"]

    def has_ended(self) -> bool:
        """It has, by now."""
        self._notes.append("process 1 has executed another program")
        return True

    def notes(self) -> tuple[str, ...]:
        """What it has said so far."""
        return tuple(self._notes)


def test_a_process_that_has_ended_is_told_and_leaves_no_folder(tmp_path: Path, refused: Refused) -> None:
    """A number that no process has any more is refused before anything is made."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    told = refused(["trace", "--pid", str(ended.pid), "--output", str(tmp_path / "run")])
    assert f"process {ended.pid}: is not there, or has ended" in told
    assert not (tmp_path / "run").exists()


def test_a_recorder_that_ends_by_itself_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """Where the disk is full or the program is another, the process may live for days; each note is told once."""

    @contextmanager
    def followed(*_: object) -> Iterator[_Ended]:
        yield _Ended()

    monkeypatch.setattr(module, "followed", followed)
    monkeypatch.setattr(module, "await_engine", lambda *_, **__: True)
    monkeypatch.setattr(module, "finish_recording", lambda _: None)
    monkeypatch.setattr(module, "tell", lambda *_: None)
    assert main(["trace", "--pid", str(os.getpid()), "--output", str(tmp_path / "run")]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "follow" not in line]
    assert told == ["trace: counter cycles is left out", "trace: process 1 has executed another program"]


@dataclass
class Recorders:
    """Answers every run with a small trace, and notes how it was asked for."""

    engine: list[tuple[LlamaPlan, str]] = field(default_factory=list)
    ebpf: list[tuple[LlamaPlan, EbpfPlan]] = field(default_factory=list)
    observed: list[Observe | None] = field(default_factory=list)

    def by_engine(self, plan: LlamaPlan, recorder: str, folder: Path, *, observe: Observe | None) -> RecorderTrace:
        """Answer for one of the engine's recorders."""
        self.engine.append((plan, recorder))
        return self._answer(folder, observe)

    def by_ebpf(self, plan: LlamaPlan, ebpf: EbpfPlan, folder: Path, *, observe: Observe | None) -> RecorderTrace:
        """Answer for the eBPF recorder, which leaves a counter out."""
        self.ebpf.append((plan, ebpf))
        return self._answer(folder, observe)

    def _answer(self, folder: Path, observe: Observe | None) -> RecorderTrace:
        assert folder.is_dir()
        self.observed.append(observe)
        return RecorderTrace(payload={"ebpf_notes": ["counter cycles: this machine has none"]}, trace=small_trace())


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorders:
    """Replace the recorders, the helper and the making of models."""
    found, command = Recorders(), "perfsuite.experiments.tracing.command_run"
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(f"{command}.traced_by_engine", found.by_engine)
    monkeypatch.setattr(f"{command}.traced_by_ebpf", found.by_ebpf)
    monkeypatch.setattr(f"{command}.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf")
    monkeypatch.setattr("perfsuite.cli.opencl_run.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr(f"{command}.memory_limit_obstacle", lambda: None)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return found


def _trace(*arguments: str) -> int:
    return main(["trace", "--model", "smollm2-135m-l2-q8_0", "--scenario", "p8-g4", *arguments])


def test_without_privileges_the_preload_recorder_is_used(recorders: Recorders, capsys: Streams) -> None:
    """It tells the operators of each thread, and where the trace is; the folder is one of its own."""
    assert _trace("--threads", "2") == 0
    ((plan, recorder),) = recorders.engine
    assert (recorder, plan.recorder, plan.n_threads, plan.n_gen) == ("preload", "none", 2, 4)
    out = capsys.readouterr().out
    assert "3 tokens" in out
    assert "perfsuite trace view statistics .perfsuite/traces/" in out


def test_levels_ask_for_ebpf(recorders: Recorders, capsys: Streams) -> None:
    """What it leaves out is told on standard error."""
    assert _trace("--trace", "counters,threads", "--counters", "cycles", "--trace-floor", "5", "--buffer", "perf") == 0
    ((_, ebpf),) = recorders.ebpf
    wanted = TraceLevel.COUNTERS | TraceLevel.THREADS
    assert TraceLevel(ebpf.levels) & wanted == wanted
    assert (ebpf.counters, ebpf.floor_tokens_per_s, ebpf.buffer) == (("cycles",), 5.0, "perf")
    assert "trace: counter cycles: this machine has none" in capsys.readouterr().err


def test_a_summary_is_told_as_json(recorders: Recorders, tmp_path: Path, capsys: Streams) -> None:
    """Standard output is one value, with the folder that was named."""
    assert _trace("--recorder", "callback", "--output", str(tmp_path / "kept"), "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["folder"] == str(tmp_path / "kept")
    assert plain["n_by_kind"]["token"] == 3


@pytest.mark.parametrize(
    ("text", "n_bytes"), [("1000000000", 10**9), ("900M", 900 << 20), ("1.5G", 3 << 29), ("64K", 64 << 10)]
)
def test_the_memory_of_the_worker_is_limited(
    recorders: Recorders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Streams, text: str, n_bytes: int
) -> None:
    """The limit is that of the worker's process, for as long as it runs; what had to be read again is told."""
    limits: list[tuple[int, int]] = []

    @contextmanager
    def limited(pid: int, limit_bytes: int) -> Iterator[MemoryGroup]:
        limits.append((pid, limit_bytes))
        (tmp_path / "memory.stat").write_text("workingset_refault_file 7\n")
        yield MemoryGroup(path=tmp_path, is_v2=True)

    monkeypatch.setattr("perfsuite.experiments.tracing.command_run.limited_memory", limited)
    assert _trace("--memory-limit", text) == 0
    (observe,) = recorders.observed
    assert observe is not None
    with observe(4711):
        pass
    assert limits == [(4711, n_bytes)]
    assert "trace: 7 pages of files were read again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n_killed", "told"), [(0, "no such symbol"), (1, "--memory-limit=64M: the kernel stopped the run")]
)
def test_a_run_that_memory_did_not_suffice_is_told_as_such(
    recorders: Recorders, monkeypatch: pytest.MonkeyPatch, n_killed: int, told: str
) -> None:
    """The kernel's kill is told with the limit, another failure as what it is."""

    @contextmanager
    def limited(pid: int, limit_bytes: int) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(n_killed=n_killed, n_refaults=7)

    monkeypatch.setattr("perfsuite.experiments.tracing.command_run.limited_memory", limited)
    assert _trace("--memory-limit", "64M") == 0
    observe = recorders.observed[0]
    assert observe is not None
    with pytest.raises(MeasurementError, match=told), observe(1):
        raise MeasurementError("no such symbol")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory-limit", "much"], "--memory-limit=much: expected bytes, such as 900M"),
        (["--scenario", "sisi"], "sisi"),
        (["--device", "nokia3310"], "nokia3310"),
        (["--output", "/dev/null/x"], "/dev/null/x: cannot be made"),
    ],
)
def test_what_cannot_run_is_one_line(
    recorders: Recorders, arguments: list[str], message: str, refused: Refused
) -> None:
    """Nothing is run before all options are understood."""
    assert message in refused(["trace", "--model", "smollm2-135m-l2-q8_0", *arguments])
    assert recorders.engine == recorders.ebpf == []
