"""What a run can measure: its cases, sweeps, and experiments, its own or of other wheels; nothing is measured yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.cases import (
    engine_kernel_cases,
    kernel_cases,
    operator_cases,
    phase_cases,
    recorded_operator_cases,
)
from perfsuite.experiments.binding.measurement import binding_cases, is_asked
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.protocol import Experiment, Sweeps
from perfsuite.experiments.run_config import RunConfig
from perfsuite.records.case import KERNELS, Case
from perfsuite.records.events import EMBEDDING_ROLE, GRAPH_PHASES, Phase

if TYPE_CHECKING:
    from perfsuite.trace.opencl.kernel_mapping import KernelMapping

#: The group of entry points by which another wheel brings experiments.
GROUP = "perfsuite.experiments"

#: The suite's own, each with what of a run asks for it: folders with a module ``experiment``, whose
#: ``open_experiments(config, forecasts)`` opens it. A run loads those alone. To add one, add a folder and a line.
OWN: Mapping[str, Callable[[RunConfig], object]] = {
    "fidelity": lambda config: config.fidelity,
    "overhead": lambda config: config.overhead,
    "tracing": lambda config: config.trace,
    "shapes": lambda config: config.shapes,
    "counted": lambda config: config.counts is not None,
}


def open_experiments(config: RunConfig, forecasts: Forecasts) -> tuple[Experiment, ...]:
    """Return the experiments that the run asks for; nothing is measured yet.

    Raises `PerfsuiteError` where an experiment's options are wrong, or nobody brings one that was named.
    """
    asked = (name for name, is_asked in OWN.items() if is_asked(config))
    found = [each for name in asked for each in _module(name).open_experiments(config, forecasts)]
    for name in config.experiments:
        found += _brought(name, config, forecasts)
    return tuple(found)


def _module(name: str) -> Any:
    """Load what an experiment of the suite is opened by."""
    return import_module(f"perfsuite.experiments.{name}.experiment")


def _brought(name: str, config: RunConfig, forecasts: Forecasts) -> tuple[Experiment, ...]:
    """Open the experiments of an entry point; one that cannot be loaded is an error with its name."""
    installed = entry_points(group=GROUP)
    if name not in installed.names:
        known = ", ".join(sorted(installed.names)) or "none is installed"
        told = f"known: {known}{meant(name, installed.names)}"
        raise PerfsuiteError(f"--perf-experiment={name}: no installed package brings it; {told}")
    entry = installed[name]
    try:
        opened = entry.load()(config, forecasts)
    except PerfsuiteError:
        raise
    except Exception as error:
        raise PerfsuiteError(f"--perf-experiment={name}: {entry.value} failed: {error!r}") from error
    return tuple(opened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumeration:
    """Everything that a run can measure and judge."""

    cases: dict[str, Case]
    sweeps: Sweeps | None = None
    #: Which kernel computes which operator, on the OpenCL backend.
    mapping: KernelMapping | None = None
    #: What options ask for beside the groups.
    experiments: tuple[Experiment, ...] = ()


def enumerate_run(config: RunConfig, forecasts: Forecasts, recorded: Sequence[str] = ()) -> Enumeration:
    """Enumerate what the options ask for; operators of a graph that is not known are those of the `recorded` ids.

    Raises PerfsuiteError: the kernels of the OpenCL backend cannot be told apart, or what was kept of shapes cannot be
    read.
    """
    mapping, cases = None, list[Case]()
    if config.profile.counts_for is None:
        mapping = _open_mapping(config)
        cases += _engine_cases(config, mapping, recorded)
        if is_asked(config):
            cases += binding_cases(config)
        if not (config.is_against or KERNELS in config.left_out):  # the two sides of --against have the same kernels
            cases += kernel_cases()
    experiments = open_experiments(config, forecasts)
    cases += (case for experiment in experiments for case in experiment.cases())
    sweeps: Sweeps | None = _module("roofline").open_sweeps(config) if config.sweeps else None
    cases += sweeps.cases() if sweeps else ()
    return Enumeration(
        cases={case.case_id: case for case in cases}, sweeps=sweeps, mapping=mapping, experiments=experiments
    )


def _open_mapping(config: RunConfig) -> KernelMapping | None:
    """Return which kernel computes which operator on the OpenCL backend; pairs have no trace of what a device does."""
    if config.opencl is None or config.old is not None:
        return None
    from perfsuite.experiments.engine_opencl import open_mapping  # brings NumPy, which other runs do not need here

    return open_mapping(config)


def _engine_cases(config: RunConfig, mapping: KernelMapping | None, recorded: Sequence[str]) -> Iterator[Case]:
    if config.backend == "cpu":
        yield from phase_cases(config.workload)
        yield from _operator_cases(config, recorded)
        return
    # The gather of the embeddings is done by the processor, and stays in the prefill.
    yield from (case for case in phase_cases(config.workload) if case.phase is not Phase.EMBEDDING)
    if mapping is not None:
        yield from (case for case in _operator_cases(config, recorded) if case.role != EMBEDDING_ROLE)
        roles = {phase: mapping.kernel_roles(phase) for phase in GRAPH_PHASES}
        yield from engine_kernel_cases(config.workload, roles)


def _operator_cases(config: RunConfig, recorded: Sequence[str]) -> Iterator[Case]:
    yield from operator_cases(config.workload)
    yield from recorded_operator_cases(config.workload, recorded)
