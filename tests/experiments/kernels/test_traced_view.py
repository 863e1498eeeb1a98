"""One process seen from its device: made up, and the real engine on a processor's OpenCL runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import platformdirs
import pytest

from perfsuite.device.profile import find_profile
from perfsuite.expectation.cases import operator_cases
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.experiments.kernels import traced_view as module
from perfsuite.experiments.kernels.traced_view import TracedView, traced_view
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import TracedRun, traced_run
from perfsuite.experiments.tracing.command_run import traced_by_opencl
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.opencl_backend import OpenClBackend, set_up_opencl
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import N_TRIES
from perfsuite.records.case import REST_ROLE
from perfsuite.records.engine_trace import EventKind
from perfsuite.records.events import EMBEDDING_ROLE, Phase
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_mapping import KernelMapping, learn_mapping
from perfsuite.trace.opencl.kernel_samples import map_run
from perfsuite.trace.recording import read_recording
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve
from tests.conftest import STORED_MODEL
from tests.synthetic_engine_kernels import FUSED, Step, recorded
from tests.synthetic_opencl_backend import CONTENDED, QUIET, opencl_backend, opencl_plan

HOST = find_profile("host")
STEPS = tuple(Step(phase=phase, kernels=FUSED) for phase in (Phase.PREFILL, Phase.DECODE, Phase.DECODE))
ENDS = (0, 1, 1, 1, 1)
FULL_SPEED = recorded(STEPS, is_grouped=False)
MAPPING = learn_mapping(recorded(STEPS, group_ends=(ENDS, ENDS)), FULL_SPEED)


@pytest.mark.parametrize("n_disturbed", [0, 1, N_TRIES])
def test_a_disturbed_process_is_run_again(n_disturbed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process without competition counts; where every try had some, the last counts and says so."""
    left = [CONTENDED] * n_disturbed + [QUIET]
    backend, plan, board = opencl_backend(tmp_path), opencl_plan(tmp_path), LocalBoard(cache_dir=tmp_path)
    learnt: list[tuple[object, ...]] = []

    def run(*arguments: object) -> TracedRun:
        assert arguments == (plan, backend, board)
        return TracedRun(payload={"contention": left.pop(0)}, run=FULL_SPEED)

    def learn(*arguments: object, model: str, cache_dir: Path, announce: Any) -> KernelMapping:
        learnt.append((*arguments, cache_dir))
        return MAPPING

    monkeypatch.setattr(module, "traced_run", run)
    monkeypatch.setattr(module, "learnt_mapping", learn)
    found = traced_view(plan, backend, HOST, board, model="synthetic:1", cache_dir=tmp_path / "cache", announce=print)
    assert len(left) == max(0, 1 + n_disturbed - N_TRIES)
    assert (found.complaint is None) == (n_disturbed < N_TRIES)
    assert learnt == [(plan, backend, board, tmp_path / "cache")]
    assert (found.engine_version, found.view.problems) == ("llama 1, ggml 1", ())


# ---- the real engine ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> LlamaWorkload:
    weights = resolve(STORED_MODEL, cache_dir=tmp_path_factory.mktemp("models"))
    return llama_workload(weights, find_scenario("p8-g4"), flash_attn=False)


@pytest.fixture(scope="module")
def backend() -> OpenClBackend:
    """Return the engine's backend on the processor's runtime; ``tools/opencl_backend.sh`` makes it."""
    found = set_up_opencl(find_engine(), "Intel", Path(platformdirs.user_cache_dir("perfsuite")))
    assert found.device.is_cpu
    return found


@pytest.fixture(scope="module")
def plan(workload: LlamaWorkload, backend: OpenClBackend, tmp_path_factory: pytest.TempPathFactory) -> LlamaPlan:
    return llama_plan(
        workload,
        find_engine(),
        gguf_path=materialize(workload.weights, cache_dir=tmp_path_factory.mktemp("gguf")),
        cache_dir=tmp_path_factory.getbasetemp() / "engine-cache",
        n_threads=1,
        opencl=backend,
    )


@pytest.fixture(scope="module")
def seen(plan: LlamaPlan, backend: OpenClBackend, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Learn the mapping in a new cache and run once more; return the mapping, the process, and what was announced."""
    announced: list[str] = []
    cache = tmp_path_factory.mktemp("mappings")
    mapping = learnt_mapping(
        plan, backend, LocalBoard(cache_dir=cache), model="synthetic:1", cache_dir=cache, announce=announced.append
    )
    return mapping, traced_run(plan, backend, LocalBoard(cache_dir=cache)), announced


@pytest.mark.long
def test_every_kernel_of_the_real_engine_has_its_operator(seen: Any, workload: LlamaWorkload) -> None:
    """Nothing is lost or unknown, and the roles are those of the expected graph except what the processor does."""
    mapping, traced, announced = seen
    mapped = map_run(traced.run.record, align(traced.run.trace), mapping)
    assert mapped.problems == ()
    assert traced.run.trace.is_complete
    for phase, n_occurrences in ((Phase.PREFILL, 1), (Phase.DECODE, 4)):
        expected = {case.role for case in operator_cases(workload) if case.phase is phase}
        occurrences = mapped.phases[phase]
        assert len(occurrences) == n_occurrences
        for each in occurrences:
            assert set(each.traced.role_ns) == expected - {EMBEDDING_ROLE, REST_ROLE}
            assert min(each.traced.role_ns.values()) > 0
            assert 0 < each.traced.operators_ns < each.traced.span.duration_ns
    assert len(announced) == 1


@pytest.mark.long
def test_the_real_engine_is_viewed(
    seen: Any, plan: LlamaPlan, backend: OpenClBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The view holds all kernels of each phase with their operators, and the device was busy and idle in each."""
    mapping, traced, _ = seen
    monkeypatch.setattr(module, "learnt_mapping", lambda *_, **__: mapping)
    monkeypatch.setattr(module, "traced_run", lambda *_: traced)
    board = LocalBoard(cache_dir=tmp_path)
    found: TracedView = traced_view(plan, backend, HOST, board, model="synthetic:1", cache_dir=tmp_path, announce=print)
    assert found.view.problems == ()
    assert [view.n_occurrences for view in found.view.phases] == [1, 4]
    for view in found.view.phases:
        assert {each.name for each in view.kernels} == set(view.roles) == set(mapping.kernel_roles(view.phase))
        assert sum(each.n for each in view.kernels) == sum(
            len(sequence.kernels) * (1 if view.phase is Phase.PREFILL else 4)
            for sequence in mapping.sequences
            if sequence.phase is view.phase
        )
        assert all(window.idle_ratio is not None and 0 < window.idle_ratio < 1 for window in view.idle)


@pytest.mark.long
def test_the_real_engine_is_traced(plan: LlamaPlan, backend: OpenClBackend, tmp_path: Path) -> None:
    """The trace that is kept has every step's operators with their names, and kernels that say which they compute."""
    announced: list[str] = []
    trace = traced_by_opencl(
        plan,
        backend,
        LocalBoard(cache_dir=tmp_path),
        tmp_path,
        model="synthetic:1",
        cache_dir=tmp_path,
        announce=announced.append,
    )
    assert read_recording(tmp_path).events.tolist() == trace.events.tolist()
    kernels, operators = trace.of(EventKind.KERNEL), trace.of(EventKind.OPERATOR)
    within = kernels[kernels["iteration"] >= 0]
    assert {trace.kernels[each["value"]] for each in within if each["node"] < 0} <= {"read", "write"}
    names = {trace.graphs[each["graph"]][each["node"]].tensor.name for each in operators}
    assert {"ffn_up-0", "ffn_up-1", "result_output"} <= names
    assert trace.of(EventKind.TOKEN).size == plan.n_gen + 1
    assert announced[-1] == "tracing"
