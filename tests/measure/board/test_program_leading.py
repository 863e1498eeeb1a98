"""A board runs what is led step by step from the desk, and what is recorded beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure.board.program_instruments import _chosen_helper
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.board.runs import RunPlace
from perfsuite.measure.engine_memory import engine_cpu_features
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.led_worker import LedWorker
from perfsuite.measure.native import PHASE_TRACER_LIBRARY, build_phase_tracer
from perfsuite.measure.plan import EbpfOverheadPlan, EbpfPlan, LlamaPlan, StepsPlan, dump_record
from perfsuite.measure.tensor_layout import tensor_layout
from perfsuite.records.bpf_log_file import BpfKind, read_bpf_log
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.trace_levels import TraceLevel

from .conftest import LLAMA, BoardHome


@pytest.fixture
def home(bundled: BoardHome) -> BoardHome:
    return bundled


@pytest.fixture
def traced(
    home: BoardHome, board: RemoteBoard, engine_cache: Path, requires_ebpf: Path, small_plan: LlamaPlan
) -> LlamaPlan:
    """Return a plan that is recorded with eBPF by what the bundle brings; skipped where only root's own is used."""
    if os.geteuid() != 0:
        pytest.skip("a bundle's own recorder is root's to run")
    home.bring_libraries(engine_cache)
    os.link(requires_ebpf, home.bundle / "perfsuite-bpf")
    helper = board.instruments.ebpf_helper()
    ebpf = EbpfPlan(helper=str(helper), log_path=str(RUN_FOLDER / "log"), levels=int(TraceLevel.TOKEN))
    return replace(small_plan, ebpf=ebpf)


def test_ebpf_follows_a_run_there(board: RemoteBoard, traced: LlamaPlan, tmp_path: Path) -> None:
    """The desk attaches it after the warm-up: its log arrives, with one token for each of the record's steps."""
    payload = board.run(traced, files=tmp_path / "files")
    assert payload["ebpf_notes"] == []
    assert len(payload["device_samples"]) > 0
    spans = EngineRecord.from_plain(payload["engine"]).spans
    log = read_bpf_log(tmp_path / "files" / "log")
    n_steps = sum(span.phase in (Phase.PREFILL, Phase.DECODE) for span in spans)
    assert n_steps == 1 + traced.n_gen
    assert log.positions(BpfKind.TOKEN_END).size == n_steps


def test_ebpf_is_switched_there_from_pair_to_pair(board: RemoteBoard, traced: LlamaPlan) -> None:
    payload = board.run(EbpfOverheadPlan(llama=replace(traced, n_repetitions=1), n_pairs=2))
    assert {phase: list(map(len, sides)) for phase, sides in payload["sums_ns"].items()} == {
        "prefill": [2, 2],
        "decode": [2, 2],
    }


def test_a_recorder_that_fails_says_why(board: RemoteBoard, traced: LlamaPlan) -> None:
    assert traced.ebpf is not None
    for ebpf, why in (
        (replace(traced.ebpf, helper="/bin/sh"), r"'/bin/sh' is not the eBPF recorder; known are "),
        (replace(traced.ebpf, log_path="/tmp/log/.."), "is not a name of a file in the folder of a run"),
    ):
        with pytest.raises(MeasurementError, match=why):
            board.run(replace(traced, ebpf=ebpf), extra_environment={"LOG": str(RUN_FOLDER)})


def test_an_engine_describes_itself_there(
    home: BoardHome, board: RemoteBoard, engine_cache: Path, small_plan: LlamaPlan
) -> None:
    """The layout of its tensors, the processor's features, and the tracer are those that this machine finds."""
    home.bring_libraries(engine_cache)
    engine = board.facts().engine
    instruments = board.instruments
    assert instruments.tensor_layout(engine) == tensor_layout(engine, engine_cache)
    plan = replace(small_plan, library_dir=str(engine.library_dir))
    assert instruments.cpu_features(plan) == engine_cpu_features(small_plan)
    with pytest.raises(NativeBuildError, match=f"holds no {PHASE_TRACER_LIBRARY}; run 'perfsuite devices setup'"):
        instruments.phase_tracer(engine)
    os.link(build_phase_tracer(engine, engine_cache), home.bundle / "lib" / PHASE_TRACER_LIBRARY)
    assert instruments.phase_tracer(engine) == home.bundle / "lib" / PHASE_TRACER_LIBRARY


#: Answers each step with what it was, writes the steps down, and leaves a record in the end.
STEPS = (
    f'echo {READY_MARK}; while read -r step; do echo "$step" >> "$LOG"; echo noise; '
    f'[ "$step" != die ] || kill -9 $$; [ "$step" != end ] || exit 1; [ "$step" != wait ] || sleep 60; '
    f'echo "{READY_MARK} $step"; done; cp "$(dirname "$0")/record" "$last"'
)


def lead(monkeypatch: pytest.MonkeyPatch, steps: Callable[[LedWorker, RunPlace], Any], limit_s: float = 20.0) -> None:
    def led(plan: LlamaPlan, place: RunPlace, _: float) -> dict[str, Any]:
        with LedWorker(place.worker(StepsPlan(llama=plan)), limit_s=limit_s) as worker:
            return {"steps": steps(worker, place), **worker.payload()}

    monkeypatch.setattr("perfsuite.measure.led_worker.lead_of", lambda plan: led)


def test_steps_are_told_and_answered(home: BoardHome, board: RemoteBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    (home.folder / "record").write_bytes(dump_record("steps", {"engine": {}}))
    home.install(STEPS)

    def steps(worker: LedWorker, place: RunPlace) -> Any:
        said = [worker.ask("one 1"), worker.ask("two")]
        assert Path(f"/proc/{worker.pid}").exists()
        return [*said, place.board.run_file(Path(f"{RUN_FOLDER}/log")).read_text().split("\n")]

    lead(monkeypatch, steps)
    payload = board.run(LLAMA, extra_environment={"LOG": str(RUN_FOLDER / "log")})
    assert payload["steps"] == ["one 1", "two", ["one 1", "two", ""]]
    assert payload["engine"] == {}


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("die", "the worker for 'steps' was killed by SIGKILL"),
        ("end", "the worker for 'steps' wrote no record: noise"),
        ("wait", "the worker for 'steps' did not finish in time and was stopped"),
    ],
)
def test_a_led_worker_that_ends_says_why(
    home: BoardHome, board: RemoteBoard, monkeypatch: pytest.MonkeyPatch, step: str, why: str
) -> None:
    home.install(STEPS)
    lead(monkeypatch, lambda worker, _: worker.ask(step), limit_s=2.0 if step == "wait" else 20.0)
    with pytest.raises(MeasurementError, match=why):
        board.run(LLAMA, extra_environment={"LOG": str(RUN_FOLDER / "log")})
    assert board.covariates()


INSTALL = (
    "no CAP_BPF for user ubuntu: sudo install -D -o root -g root -m 755 /home/b/perfsuite-bpf "
    "/usr/local/libexec/perfsuite/perfsuite-bpf && sudo setcap cap_bpf,cap_perfmon=ep "
    "/usr/local/libexec/perfsuite/perfsuite-bpf"
)


@pytest.mark.parametrize(
    ("changed", "bundles", "why"),
    [
        ({"pid_namespace": "pid:[1]"}, {}, "eBPF cannot be used there: in a container: "),
        ({}, {}, INSTALL),
        ({"user": "root"}, {"is_roots_alone": False}, "no CAP_BPF for user root: "),
    ],
)
def test_the_one_thing_that_recording_lacks_is_told(changed: dict[str, Any], bundles: dict[str, Any], why: str) -> None:
    """It comes with its remedy, by the user and the paths of the board; root has installed no recorder there."""
    installed = {"path": "/usr/local/libexec/perfsuite/perfsuite-bpf", "is_file": False, "is_roots_alone": False}
    bundled = {"path": "/home/b/perfsuite-bpf", "is_file": True, "is_roots_alone": True, "version": "perfsuite-bpf 1"}
    told = {
        "has_kernel_types": True,
        "has_uprobes": True,
        "pid_namespace": "pid:[4026531836]",
        "user": "ubuntu",
        "programs": [{**installed, "version": ""}, {**bundled, **bundles}],
        **changed,
    }
    with pytest.raises(MeasurementError) as caught:
        _chosen_helper(told)
    assert str(caught.value).startswith(why)
