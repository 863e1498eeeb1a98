"""What a run of fidelity compares, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.profile import Profile
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.experiments.fidelity.scored_run import FidelityKind
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

#: Fresh processes of each tracer.
N_PROCESSES = 3
#: Pairs of a base run and a duplicated run, and the time for those of one kernel.
N_ROUNDS = 5
KERNEL_BUDGET_NS = 6_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityRequest:
    """What is to be compared, on what."""

    profile: Profile
    board: Board
    engine: Engine
    workload: LlamaWorkload
    cache_dir: Path
    #: Where the logs of failed builds go.
    log_dir: Path
    n_threads: int
    opencl_platform: str | None
    #: The engine's OpenCL backend, and whether its kernels are duplicated as well.
    opencl: OpenClBackend | None = None
    with_engine_kernels: bool = True
    kinds: frozenset[FidelityKind] = frozenset(FidelityKind)
    #: Whether phases are compared with kernel probes as well, where the kernel allows them.
    with_uprobes: bool = True
    #: The suite's own kernels.
    case_ids: tuple[str, ...] = tuple(case.case_id for case in STANDARD_KERNELS)
    #: A slowdown on purpose, which the suite's spans have in them and the tracer's do not.
    inject_phases: tuple[str, ...] = ()
    inject_ratio: float = 0.0
    n_processes: int = N_PROCESSES
    n_rounds: int = N_ROUNDS
    kernel_budget_ns: int = KERNEL_BUDGET_NS
