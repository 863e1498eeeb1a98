"""Learning the mapping of a workload once, with made-up processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.traced_run import TracedRun
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from tests.synthetic_engine_kernels import ALONE, FUSED, Step, recorded
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

PHASES = (Phase.PREFILL, Phase.DECODE, Phase.DECODE)
ENDS = ((0, 1, 1, 1, 1), (0, 1, 1, 1, 1))
KERNELS = ("rms_norm_mul", "quantize", "mul_mat", "add")
ROLES = ("attn_norm", "Qcur", "Qcur", "l_out")


@dataclass
class Engine:
    """Runs plans: node by node without fusion, else with it."""

    #: What a group is computed by.
    grouped: tuple[tuple[str, ...], ...] = FUSED
    plans: list[LlamaPlan] = field(default_factory=list)

    def run(self, plan: LlamaPlan, *_: object) -> TracedRun:
        """Return what a process would bring."""
        self.plans.append(plan)
        is_grouped = plan.recorder == "groups"
        by_node = is_grouped and plan.group_ends == ((), ())
        kernels = ALONE if by_node else self.grouped if is_grouped else FUSED
        steps = [Step(phase=phase, kernels=kernels) for phase in PHASES]
        return TracedRun(payload={}, run=recorded(steps, group_ends=plan.group_ends, is_grouped=is_grouped))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    found = Engine()
    monkeypatch.setattr("perfsuite.experiments.learnt_mapping.traced_run", found.run)
    return found


#: Learns a mapping for a plan and a backend.
Learn = Callable[..., KernelMapping]


@pytest.fixture
def announced() -> list[str]:
    return []


@pytest.fixture
def learn(tmp_path: Path, announced: list[str]) -> Learn:
    """Return how to learn in a cache of its own."""

    def learnt(
        plan: LlamaPlan | None = None, backend: OpenClBackend | None = None, model: str = "synthetic:1"
    ) -> KernelMapping:
        return learnt_mapping(
            plan or opencl_plan(tmp_path),
            backend or opencl_backend(tmp_path),
            LocalBoard(cache_dir=tmp_path),
            model=model,
            cache_dir=tmp_path / "cache",
            announce=announced.append,
        )

    return learnt


def test_three_runs_teach_a_mapping(engine: Engine, learn: Learn, announced: list[str], tmp_path: Path) -> None:
    mapping = learn(replace(opencl_plan(tmp_path), n_repetitions=3))
    single = opencl_plan(tmp_path)
    groups = replace(single, recorder="groups")
    assert engine.plans == [single, groups, replace(groups, group_ends=ENDS)]
    assert [mapping.roles_of(phase, KERNELS) for phase in (Phase.PREFILL, Phase.DECODE)] == [ROLES, ROLES]
    assert announced == ["learning which kernels compute which operator: three runs, once for this build and device"]


def test_a_mapping_is_learnt_once(engine: Engine, learn: Learn, announced: list[str], tmp_path: Path) -> None:
    first = learn()
    assert learn() == first
    assert (len(engine.plans), len(announced)) == (3, 1)
    plan = opencl_plan(tmp_path)
    elsewhere = {"cache_dir": "/elsewhere", "library_dir": "/engine"}
    learn(replace(plan, n_repetitions=4, layout_seed=77, **elsewhere))
    assert len(engine.plans) == 3


def test_a_mapping_that_cannot_be_read_is_learnt_anew(engine: Engine, learn: Learn, tmp_path: Path) -> None:
    first = learn()
    (path,) = (tmp_path / "cache" / "mappings").iterdir()
    stored = path.read_bytes()
    path.write_text('{"sequences": [{"phase": "decode", "kernels": ["a", "b"], "roles": ["x"]}]}')
    assert learn() == first
    assert len(engine.plans) == 6
    assert path.read_bytes() == stored


def test_what_may_change_a_kernel_is_learnt_again(engine: Engine, learn: Learn, tmp_path: Path) -> None:
    """Another length, build, attention, file, backend, layer, driver or switch has a mapping of its own."""
    plan, backend = opencl_plan(tmp_path), opencl_backend(tmp_path)
    learn()
    learn(replace(plan, n_prompt=2))
    learn(replace(plan, engine_build_id="2"))
    learn(replace(plan, flash_attn=not plan.flash_attn))
    learn(plan, opencl_backend(tmp_path, driver_version="1.3"))
    learn(plan, replace(backend, settings={**backend.settings, "GGML_OPENCL_MM_F16_FORCE_L4": "1"}))
    learn(plan, replace(backend, compatibility_id="another"))
    n_learnt = 7
    learn(plan, replace(backend, library_id="another"))
    learn(plan, model="synthetic:2")
    n_learnt += 2
    assert len(list((tmp_path / "cache" / "mappings").iterdir())) == n_learnt
    assert len(engine.plans) == 3 * n_learnt


def test_a_mapping_that_would_be_a_guess_is_not_kept(engine: Engine, learn: Learn, tmp_path: Path) -> None:
    engine.grouped = (("rms_norm_mul",), (), (), ("mul_mat", "quantize"), ("add",))
    with pytest.raises(MeasurementError, match="kernel 1 is mul_mat group by group, quantize at full speed"):
        learn()
    assert not (tmp_path / "cache" / "mappings").exists()
