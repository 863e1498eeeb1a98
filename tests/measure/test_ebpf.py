"""The eBPF recorder on a real run of llama.cpp: what its log holds, how it ends, and what it may do."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.ebpf import EbpfRecording, HelperPipes, start_ebpf
from perfsuite.measure.ebpf_helper import CAPABILITIES_ATTRIBUTE, helper_capabilities
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import EbpfPlan, LlamaPlan
from perfsuite.records.bpf_log_file import BpfKind, BpfLog, EndReason, LevelsReason, read_bpf_log
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_levels import TraceLevel

from .conftest import wait_until
from .traced_llama import TracedLlama, build_traced_llama

OPERATORS = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE
NOBODY = 65534
AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
LIMIT_S = 60

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it needs root to become another user or to look at one")


def started(helper: Path, pid: int, *more: str, **options: Any) -> EbpfRecording:
    """Start a helper; a test leads it as `start_ebpf` would."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    recording = EbpfRecording(HelperPipes(subprocess.Popen([str(helper), "--pid", str(pid), *more], **pipes)))
    recording.wait_until_ready(LIMIT_S)
    return recording


@pytest.fixture(scope="module")
def program(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_traced_llama(engine, tmp_path_factory.mktemp("traced"))


@pytest.fixture
def target(requires_ebpf: Path, program: Path, small_plan: LlamaPlan) -> Iterator[TracedLlama]:
    """Return that program with a small model loaded, on two threads; skipped where there is no eBPF."""
    with TracedLlama(program, small_plan.gguf_path) as running:
        yield running


@dataclass(frozen=True)
class Recorder:
    pid: int
    helper: Path
    log_path: Path

    def start(
        self,
        levels: TraceLevel = TraceLevel.TOKEN,
        layout: TensorLayout | None = None,
        *,
        buffer_bytes: int | None = None,
        **options: Any,
    ) -> EbpfRecording:
        ebpf = EbpfPlan(helper=str(self.helper), log_path=str(self.log_path), levels=int(levels), **options)
        return start_ebpf(self.pid, ebpf, layout, buffer_bytes=buffer_bytes)

    def log(self) -> BpfLog:
        return read_bpf_log(self.log_path)


@pytest.fixture
def recorder(target: TracedLlama, requires_ebpf: Path, tmp_path: Path) -> Recorder:
    return Recorder(pid=target.pid, helper=requires_ebpf, log_path=tmp_path / "log")


def count(log: BpfLog, kind: BpfKind) -> int:
    return int(log.positions(kind).size)


def ended(log: BpfLog) -> tuple[EndReason, int]:
    (last,) = log.records[log.positions(BpfKind.END)]
    return EndReason(int(last["value"])), int(last["subject"])


@pytest.mark.parametrize("buffer", ["ring", "perf"])
def test_every_operator_is_seen_on_every_thread(
    target: TracedLlama, recorder: Recorder, layout: TensorLayout, buffer: str
) -> None:
    """Each token has as many operators as the others, the same on both threads, and nothing is lost or out of order."""
    with recorder.start(OPERATORS, layout, buffer=buffer):
        target.decode(5)
    log = recorder.log()
    assert log.cut is None
    assert ended(log) == (EndReason.TOLD, 0)
    assert list(log.records[log.positions(BpfKind.TOKEN_BEGIN)]["value"]) == [1] * 5
    assert count(log, BpfKind.TOKEN_END) == count(log, BpfKind.GRAPH_BEGIN) == count(log, BpfKind.GRAPH_END) == 5
    operators = log.records[log.positions(BpfKind.OPERATOR_BEGIN)]
    by_thread = [operators[operators["tid"] == tid] for tid in np.unique(operators["tid"])]
    assert len(by_thread) == 2
    assert list(by_thread[0]["subject"]) == list(by_thread[1]["subject"])
    assert {int(value) for value in operators["value"]} == {0 | 2 << 16, 1 | 2 << 16}
    assert by_thread[0].size % 5 == 0
    assert all((np.diff(thread["ns"]) > 0).all() for thread in by_thread)


def test_counters_of_a_thread_are_its_own(target: TracedLlama, recorder: Recorder, layout: TensorLayout) -> None:
    """Counters never go back on a thread, start near nothing, and come with operators and ends alike."""
    levels = OPERATORS | TraceLevel.ENDS | TraceLevel.COUNTERS
    names = ("page-faults-minor", "context-switches", "migrations")
    with recorder.start(levels, layout, counters=names):
        target.prompt(64)
        target.decode(8)
    log = recorder.log()
    assert log.counter_names == names
    places = log.positions(BpfKind.OPERATOR_BEGIN, BpfKind.BARRIER)
    rows, tids = log.counters(places), log.records["tid"][places]
    assert (rows >= 0).all()
    for tid in np.unique(tids):
        own = rows[tids == tid]
        assert (np.diff(own, axis=0) >= 0).all()
        assert own[0].max() < 1000
    assert rows[:, 0].max() > 0  # the prompt's buffers are touched for the first time


def test_experts_are_told_once_an_evaluation(
    requires_ebpf: Path, program: Path, routed_plan: LlamaPlan, layout: TensorLayout, tmp_path: Path
) -> None:
    """Each layer's ids come once a token, though three products read them; a long prompt comes in pieces."""
    with TracedLlama(program, routed_plan.gguf_path) as target:
        recorder = Recorder(pid=target.pid, helper=requires_ebpf, log_path=tmp_path / "log")
        with recorder.start(TraceLevel.TOKEN | TraceLevel.EXPERTS, layout):
            target.decode(3)
            target.prompt(100)
    log = recorder.log()
    places = log.positions(BpfKind.EXPERT_IDS)
    pieces = [np.frombuffer(log.tail(int(place)), np.int32) for place in places]
    shapes = [(int(value) & 0xFFFF, int(value) >> 16) for value in log.records["value"][places]]
    assert shapes[:6] == [(4, 1)] * 6
    assert [int(piece[1]) for piece in pieces[:6]] == [4] * 6
    first_layer = [piece for piece, shape in zip(pieces, shapes, strict=True) if shape == (4, 100)]
    assert [int(piece[0]) for piece in first_layer] == [0, 16, 32, 48, 64, 80, 96]
    assert sum(int(piece[1]) for piece in first_layer) == 400
    ids = [piece[2 : 2 + int(piece[1])].reshape(-1, 4) for piece in pieces]
    assert all(((each >= 0) & (each < 60)).all() for each in ids)
    assert all(len(set(row)) == 4 for each in ids for row in each.tolist())


def test_levels_are_switched_while_it_runs(target: TracedLlama, recorder: Recorder, layout: TensorLayout) -> None:
    with recorder.start(OPERATORS, layout) as recording:
        target.decode(2)
        for levels in (TraceLevel.TOKEN, TraceLevel.TOKEN | TraceLevel.OPERATOR):
            recording.switch(levels)
            target.decode(2)
    log = recorder.log()
    switches = log.records[log.positions(BpfKind.LEVELS)]
    assert [int(each) for each in switches["subject"]] == [1, 5]
    assert set(switches["flags"]) == {LevelsReason.TOLD}
    operators = log.records["ns"][log.positions(BpfKind.OPERATOR_BEGIN)]
    off, on = (int(each) for each in switches["ns"])
    assert (operators < off).any()
    assert not ((operators > off) & (operators < on)).any()
    assert (operators > on).any()
    assert count(log, BpfKind.TOKEN_BEGIN) == 6


@pytest.mark.long_but_first
@pytest.mark.parametrize("buffer", ["ring", "perf"])
def test_lost_events_are_counted(target: TracedLlama, recorder: Recorder, buffer: str) -> None:
    counts = []
    for n_bytes in (None, 4096):
        with recorder.start(TraceLevel.ENDS, buffer=buffer, buffer_bytes=n_bytes):
            target.decode(20)
        log = recorder.log()
        _, n_lost = ended(log)
        assert n_lost == int(log.records["subject"][log.positions(BpfKind.LOST)].sum())
        counts.append((count(log, BpfKind.BARRIER), n_lost))
    large, small = counts
    assert large[1] == 0 < small[1]
    assert sum(small) == large[0]


def test_it_may_do_no_more_than_it_needs(recorder: Recorder) -> None:
    """While it records it has CAP_BPF and CAP_PERFMON, nothing else and nothing to gain, in a session of its own.

    A program may go on after Ctrl-C, as a chat does.
    """
    with recorder.start() as recording:
        assert os.getsid(recording.helper_pid) == recording.helper_pid
        text = Path(f"/proc/{recording.helper_pid}/status").read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    two = f"{1 << 39 | 1 << 38:016x}"
    assert status["CapEff"] == status["CapPrm"] == two
    assert status["CapInh"] == status["CapAmb"] == f"{0:016x}"
    assert status["CapBnd"] == two or os.geteuid() != 0
    assert status["NoNewPrivs"] == "1"


@as_root
def test_it_keeps_no_file_of_its_parent(target: TracedLlama, requires_ebpf: Path, tmp_path: Path) -> None:
    with (
        (tmp_path / "secret").open("w") as secret,
        started(requires_ebpf, target.pid, pass_fds=(secret.fileno(),)) as recording,
    ):
        links = [os.readlink(link) for link in Path(f"/proc/{recording.helper_pid}/fd").iterdir()]
    assert "/dev/null" in links
    assert str(tmp_path / "secret") not in links


def test_it_is_not_bound_to_its_parents_processor(recorder: Recorder) -> None:
    """A parent that is bound to one processor does not bind the helper, which would wait behind what it records."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        recording = recorder.start()
    finally:
        os.sched_setaffinity(0, allowed)
    with recording:
        assert os.sched_getaffinity(recording.helper_pid) >= allowed


@as_root
def test_anothers_process_is_refused(requires_ebpf: Path, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], **AS_NOBODY) as other:
        try:
            with pytest.raises(MeasurementError, match=f"belongs to user {NOBODY}, not to user 0"):
                Recorder(pid=other.pid, helper=requires_ebpf, log_path=tmp_path / "log").start()
        finally:
            other.kill()
    assert (tmp_path / "log").read_bytes() == b""


def test_it_ends_with_what_it_records(target: TracedLlama, recorder: Recorder) -> None:
    with recorder.start() as recording:
        target.decode(2)
        target.kill()
        assert wait_until(recording.has_ended, LIMIT_S)
        with pytest.raises(MeasurementError, match="has ended"):
            recording.switch(TraceLevel.TOKEN)
    assert ended(recorder.log()) == (EndReason.WITH_TARGET, 0)
    assert count(recorder.log(), BpfKind.TOKEN_BEGIN) == 2


def test_it_ends_with_the_program_that_it_records(target: TracedLlama, recorder: Recorder) -> None:
    """Nothing is recorded of a program that is executed in its place: that may have another user's privileges."""
    with recorder.start(TraceLevel.TOKEN | TraceLevel.THREADS) as recording:
        target.decode(2)
        target.execute_anew()
        target.decode(1)
        notes = recording.finish()
    assert notes == (f"process {target.pid} has executed another program; the recording ends there",)
    log = recorder.log()
    assert ended(log)[0] is EndReason.WITH_TARGET
    assert count(log, BpfKind.TOKEN_BEGIN) == count(log, BpfKind.TOKEN_END) == 2


def test_a_killed_recorder_leaves_what_it_wrote(target: TracedLlama, recorder: Recorder, layout: TensorLayout) -> None:
    """The log loads up to where it was killed, its probes are gone with it, and the target goes on.

    SIGTERM has it finish the log.
    """
    recording = recorder.start(OPERATORS, layout)
    target.decode(3)
    assert wait_until(lambda: count(recorder.log(), BpfKind.TOKEN_END) == 3)
    recording.kill()
    target.decode(1)
    assert recorder.log().cut is not None
    assert count(recorder.log(), BpfKind.TOKEN_END) == 3
    with recorder.start() as recording:
        target.decode(2)
        os.kill(recording.helper_pid, signal.SIGTERM)
        recording.finish()
    assert ended(recorder.log())[0] is EndReason.TOLD
    assert count(recorder.log(), BpfKind.TOKEN_END) == 2
    target.decode(1)


def test_a_log_that_cannot_be_written_ends_it_with_the_reason(target: TracedLlama, recorder: Recorder) -> None:
    with pytest.raises(MeasurementError, match=r"the log cannot be written \(No space left on device\)"):
        replace(recorder, log_path=Path("/dev/full")).start()
    read, write = os.pipe()
    recording = started(recorder.helper, target.pid, "--levels", "1", stdout=write)
    os.close(write)
    os.close(read)
    target.decode(2)
    with pytest.raises(MeasurementError, match=r"the log cannot be written \(Broken pipe\)"):
        recording.finish()


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("shell", "error"),
    [
        ("exec {} <&-", ""),  # its input is at its end
        ("exec {} >&-", "error: the log cannot be written (Bad file descriptor)\n"),
        ("ulimit -f 0; exec {}", "error: the log cannot be written (File too large)\n"),
        ("ulimit -Sn 16; exec {}", ""),  # it may have as many as the user
    ],
)
def test_what_it_inherits_does_not_break_it(
    target: TracedLlama, requires_ebpf: Path, tmp_path: Path, shell: str, error: str
) -> None:
    """With streams that are closed and small limits it works or says why not, and never waits for what cannot come."""
    command = shell.format(f'"{requires_ebpf}" --pid {target.pid} --levels 1')
    with (tmp_path / "log").open("wb") as log:
        done = subprocess.run(
            ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.PIPE, timeout=LIMIT_S
        )
    assert done.stderr.decode() == (error or "ready\n")
    assert done.returncode == bool(error)


def test_the_kernels_own_statistics_are_told(target: TracedLlama, recorder: Recorder) -> None:
    """Asked for statistics, each program says how often it ran and how long; or a note says that it needs root."""
    with recorder.start(TraceLevel.TOKEN | TraceLevel.OPERATOR, statistics=True) as recording:
        target.decode(4)
        notes = recording.finish()
    log = recorder.log()
    probes = {}
    for place in log.positions(BpfKind.PROBE):
        tail = bytes(log.tail(int(place)))
        run_time_ns = int(log.records["subject"][place])
        probes[tail[8:].split(b"\0")[0].decode()] = (int.from_bytes(tail[:8], "little"), run_time_ns)
    assert set(probes) >= {"token_begin", "token_end", "operator_begin", "fused_begin", "barrier_begin", "switched"}
    if notes:
        assert "it needs root" in notes[0]
        return
    assert probes["token_begin"][0] == 4
    assert probes["barrier_begin"] == (0, 0)
    n_operators = probes["operator_begin"][0] + probes["fused_begin"][0]
    assert n_operators == count(log, BpfKind.OPERATOR_BEGIN)
    assert probes["operator_begin"][1] > 0


@pytest.fixture
def capable_helper(requires_ebpf: Path) -> Iterator[Path]:
    """Give a helper as it is installed, in a folder that every user can enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="perfsuite-public-"))
    folder.chmod(0o755)
    helper = Path(shutil.copy(requires_ebpf, folder / requires_ebpf.name))
    helper.chmod(0o755)
    os.setxattr(helper, CAPABILITIES_ATTRIBUTE, helper_capabilities())
    yield helper
    shutil.rmtree(folder)


@as_root
def test_an_unprivileged_user_records_a_process_of_ones_own(
    engine: Engine, small_plan: LlamaPlan, capable_helper: Path
) -> None:
    """With the file capabilities that the installed helper has, nobody else than the user is needed."""
    folder = capable_helper.parent
    program = build_traced_llama(engine, folder)
    for path in (*engine.library_dir.glob("lib*.so.0"), Path(small_plan.gguf_path)):
        shutil.copy(path, folder / path.name)
        (folder / path.name).chmod(0o755)
    levels = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.ENDS | TraceLevel.THREADS
    more = ("--levels", str(int(levels)), "--counter", "page-faults-minor:1:5")
    with (
        TracedLlama(program, folder / Path(small_plan.gguf_path).name, user=NOBODY) as target,
        (folder / "log").open("wb") as log_file,
        started(capable_helper, target.pid, *more, stdout=log_file, **AS_NOBODY) as recording,
    ):
        status = Path(f"/proc/{recording.helper_pid}/status").read_text()
        target.decode(3)
    assert f"CapEff:\t{1 << 39 | 1 << 38:016x}" in status
    assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
    log = read_bpf_log(folder / "log")
    assert log.cut is None
    assert ended(log) == (EndReason.TOLD, 0)
    assert count(log, BpfKind.TOKEN_BEGIN) == 3
    assert count(log, BpfKind.OPERATOR_BEGIN) > 0
    assert count(log, BpfKind.BARRIER) > count(log, BpfKind.OPERATOR_BEGIN) / 2


@as_root
def test_an_unprivileged_user_cannot_record_roots_process(target: TracedLlama, capable_helper: Path) -> None:
    command = [str(capable_helper), "--pid", str(target.pid), "--levels", "1"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False, **AS_NOBODY
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"belongs to user 0, not to user {NOBODY}" in done.stderr.decode()


def test_a_helper_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    silent = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    recording = EbpfRecording(HelperPipes(silent))
    with pytest.raises(MeasurementError, match=r"no answer after 0\.1 s"):
        recording.wait_until_ready(0.1)
    recording.kill()
    mute = EbpfRecording(HelperPipes(subprocess.Popen(["false"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)))
    with pytest.raises(MeasurementError, match="eBPF recorder: has ended"):
        mute.wait_until_ready(LIMIT_S)
