"""The worker, llama.cpp and the recorders on 64-bit Arm, under an emulator: their records are whole, and as here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.engine import find_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import LlamaPlan, OperatorsPlan, Plan, dump_plan, load_record
from perfsuite.records.bundle import ENGINE, LIBRARIES, WORKER, read_manifest
from perfsuite.records.engine_columns import evaluations_of, thread_operators
from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import EngineRecord
from perfsuite.workload.weights import materialize, resolve
from tests.arm_root import EMULATOR, ArmRoot

_N_THREADS = 2
#: One replicate takes about two seconds under an emulator.
_LIMIT_S = 120


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> LlamaPlan:
    """Return the plan of a short run of two layers of the smallest architecture, on the engine that is installed."""
    folder, engine = tmp_path_factory.mktemp("models"), find_engine()
    return LlamaPlan(
        gguf_path=str(materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=folder), cache_dir=folder)),
        library_dir=str(engine.library_dir),
        engine_build_id=engine.build_id,
        cache_dir=str(folder),
        n_threads=_N_THREADS,
        n_prompt=16,
        n_gen=4,
    )


@pytest.fixture
def on_arm(arm_root: ArmRoot, arm_bundle: Path, requires_emulator: None, tmp_path: Path) -> Any:
    """Return how to run a plan, made for the engine of here, on that of the bundle."""
    build_id = read_manifest(arm_bundle).engine.build_id

    def run(plan: Plan) -> dict[str, Any]:
        there = replace(plan, library_dir=str(arm_bundle / ENGINE), engine_build_id=build_id)  # type: ignore[call-arg]
        (tmp_path / "plan").write_bytes(dump_plan(there))
        libraries = [
            f"--{name}-library={arm_bundle / LIBRARIES / f'libperfsuite_{name}.so'}" for name in ("engine", "probe")
        ]
        files = [str(tmp_path / name) for name in ("plan", "record")]
        command = [EMULATOR, "-L", str(arm_root.root), str(arm_bundle / WORKER), "run", *files, *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(load_record((tmp_path / "record").read_bytes(), plan.task))

    return run


def _structure(record: EngineRecord) -> tuple[Any, ...]:
    """What of a record says what was done, and nothing of when or for how long."""
    spans = [(span.phase, span.token, span.n_tokens) for span in record.spans]
    graphs = [[(node.op, node.tensor.name, node.tensor.ne, node.timed) for node in graph] for graph in record.graphs]
    return spans, graphs, evaluations_of(record).graph.tolist(), record.n_dropped


@pytest.mark.long
@pytest.mark.parametrize("recorder", ["none", "callback", "groups", "preload"])
def test_a_replicate_is_the_same_on_arm(plan: LlamaPlan, on_arm: Any, recorder: str) -> None:
    """Phases, tokens, graphs, shapes and timed nodes are those of this machine's run, with each of the recorders."""
    asked = replace(plan, recorder=recorder)
    payload = on_arm(asked)
    here, there = (EngineRecord.from_plain(each["engine"]) for each in (run_worker(asked), payload))
    assert _structure(there) == _structure(here)
    assert bool(there.graphs) == (recorder != "none")
    assert payload["peak_rss_bytes"] > 0
    assert payload["contention"]["wall_ns"] > 0


@pytest.mark.long
def test_each_thread_on_arm_has_each_timed_node_once_an_evaluation(plan: LlamaPlan, on_arm: Any) -> None:
    """Stamps equal timed nodes: on both threads, in order, each with its end, none within another."""
    record = EngineRecord.from_plain(on_arm(replace(plan, recorder="preload"))["engine"])
    timed = [[place for place, node in enumerate(graph) if node.timed] for graph in record.graphs]
    expected = [(graph, node) for graph in evaluations_of(record).graph.tolist() for node in timed[graph]]
    operators = thread_operators(record)
    for thread in range(_N_THREADS):
        own = operators[operators["thread"] == thread]
        assert own[["graph", "node"]].tolist() == expected
        assert (own["end_ns"] != NOTHING).all()
        assert (own["start_ns"] <= own["end_ns"]).all()
        assert (own["end_ns"][:-1] <= own["start_ns"][1:]).all()


@pytest.mark.long
def test_operators_alone_are_computed_on_arm(plan: LlamaPlan, on_arm: Any) -> None:
    """The operators of a calibration are run one by one, each at its place."""
    shapes = tuple(
        OperatorShape(op="MUL_MAT", type=kind, n_inner=256, n_outer=32, n_tokens=2) for kind in ("q8_0", "q4_0", "f16")
    )
    operators = OperatorsPlan(
        library_dir=plan.library_dir,
        engine_build_id=plan.engine_build_id,
        cache_dir=plan.cache_dir,
        n_threads=_N_THREADS,
        shapes=shapes,
        budget_ns=1_000_000,
        spread_bytes=1 << 16,
    )
    times_ns = on_arm(operators)["times_ns"]
    assert len(times_ns) == len(shapes)
    assert all(each > 0 for each in times_ns)
