"""The engine that is installed, a model of two layers, and a stand-in for the worker, for tests that run workers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.runs import RunPlace, payload_of
from perfsuite.measure.board.told_worker import ToldWorker
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.led_worker import LedWorker
from perfsuite.measure.native import find_worker
from perfsuite.measure.plan import LlamaPlan, Plan, StepsPlan
from perfsuite.measure.tensor_layout import tensor_layout
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.own_files import user_cache
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.workload.catalog import find
from perfsuite.workload.weights import materialize, resolve, synthetic_weights

#: Two layers of the smallest architecture of the catalogue: 38 MB.
SMALL_MODEL = "smollm2-135m-l2-q8_0"

Child = Callable[[str], None]


@pytest.fixture(scope="session")
def engine() -> Engine:
    return find_engine()


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "engine-cache"


@pytest.fixture(scope="session")
def layout(engine: Engine, engine_cache: Path) -> TensorLayout:
    return tensor_layout(engine, engine_cache)


@pytest.fixture(scope="session")
def small_plan(engine: Engine, engine_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> LlamaPlan:
    """Return the plan of a short run of a small synthetic model on one thread."""
    folder = tmp_path_factory.mktemp("models")
    path = materialize(resolve(SMALL_MODEL, cache_dir=folder), cache_dir=folder)
    return LlamaPlan(
        gguf_path=str(path),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(engine_cache),
        n_threads=1,
        n_prompt=16,
        n_gen=4,
    )


@pytest.fixture(scope="session")
def routed_plan(small_plan: LlamaPlan, tmp_path_factory: pytest.TempPathFactory) -> LlamaPlan:
    """Return the plan of a short run of two narrow layers of 60 experts, of which each token takes 4."""
    architecture = find("qwen1.5-moe-a2.7b").with_layers(2)
    assert architecture.moe is not None
    moe = replace(architecture.moe, n_ff_expert=64, n_ff_shared=128)
    narrow = replace(architecture, name="narrow-moe", n_embd=256, n_vocab=512, n_heads=2, n_kv_heads=2, moe=moe)
    folder = tmp_path_factory.mktemp("routed")
    return replace(
        small_plan, gguf_path=str(materialize(synthetic_weights(narrow, "q8_0", cache_dir=folder), cache_dir=folder))
    )


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """Return how to replace the worker by a shell script, whose plan is ``$plan`` and whose record is ``$record``."""

    def replaced_by(script: str) -> None:
        path = write_script(tmp_path / "child", f"shift; plan=$1 record=$2\n{script}")
        program = find_worker(user_cache())
        wrapper = write_script(tmp_path / "program", f'exec {shlex.quote(str(program))} "$@" --worker={path}')
        monkeypatch.setattr("perfsuite.measure.board.local_board.find_worker", lambda _: wrapper)
        monkeypatch.setattr(LocalBoard, "command_of", lambda board, plan: ([], []))

    return replaced_by


@contextmanager
def led(plan: LlamaPlan, limit_s: float = 60.0) -> Iterator[LedWorker]:
    with closing(LocalBoard(cache_dir=Path(plan.cache_dir))) as board:
        _, options = board.command_of(plan)
        place = RunPlace(board=board, environment=board.environment_of(plan, {}), options=options, beside={})
        with LedWorker(place.worker(StepsPlan(llama=plan)), limit_s=limit_s) as worker:
            yield worker


@contextmanager
def waiting_worker(plan: Plan, environment: Mapping[str, str]) -> Iterator[ToldWorker]:
    """Start a worker of this machine that is asked step by step, and end it with the context."""
    with closing(LocalBoard(cache_dir=user_cache())) as board:
        own, (_, options) = board.environment_of(plan, environment), board.command_of(plan)
        told = ToldWorker(board.program.ask, payload_of, plan, environment=own, options=options)
        with closing(told):
            yield told


def write_script(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def spans_of(record: EngineRecord, phase: Phase) -> list[Span]:
    return [span for span in record.spans if span.phase is phase]


def wait_until(is_so: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Wait until something is so; whether it came to be."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.02)
    return is_so()


def is_gone(pid: int) -> bool:
    """Whether a process is gone, or dead and not asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
