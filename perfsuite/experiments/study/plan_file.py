"""Reads a study's plan from TOML; every mistake names the place, the value and what is accepted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, NoReturn

from msgspec import Meta

from perfsuite.device.profile import find_profile, profile_names
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.records.codec import Name, Size, read_toml
from perfsuite.workload.prompts import prompt_lengths
from perfsuite.workload.scenario import find_scenario

#: What is shorter or longer is no token's time, but a mistake that ratios of latencies would overflow with.
_LEAST_S, _MOST_S = 1e-15, 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLatency:
    """What a token takes, one value a process."""

    prefill_samples_s: tuple[float, ...]
    decode_samples_s: tuple[float, ...]
    #: ``measured``, ``given``, or the file that it was taken from.
    source: str

    def __post_init__(self) -> None:
        for samples in (self.prefill_samples_s, self.decode_samples_s):
            if not samples or not all(_LEAST_S <= each <= _MOST_S for each in samples):
                raise PerfsuiteError(
                    f"latency from {self.source}: samples are {str(samples)[:80]}, expected times above 0: "
                    f"{_LEAST_S:g} s to {_MOST_S:g} s"
                )

    @property
    def prefill_s_per_token(self) -> float:
        return median(self.prefill_samples_s)

    @property
    def decode_s_per_token(self) -> float:
        return median(self.decode_samples_s)


_Time = Annotated[float, Meta(ge=_LEAST_S, lt=_MOST_S, description=f"a time above 0: {_LEAST_S:g} s to {_MOST_S:g} s")]


_Chance = Annotated[float, Meta(ge=0.0, lt=1.0, description="a share of 0 or more and below 1")]
#: A path, or several.
_Names = Name | Annotated[tuple[Name, ...], Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyTask:
    """A task with the metric that counts as its accuracy."""

    name: Name
    metric: Name
    #: Accuracy of guessing, which is taken off every accuracy, the reference's too.
    chance: _Chance = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One model in one quantisation."""

    model: str
    #: What models are grouped by, such as ``Pythia``.
    suite: str
    quantization: str
    #: Whether the model's other quantisations are compared with this one.
    is_original: bool
    #: A name of the catalogue with its quantisation, or a GGUF's path.
    weights: str
    #: Files of lm-evaluation-harness.
    accuracies: tuple[Path, ...]
    #: What the latency is, or where it comes from, if it is not measured: at most one of the two.
    latency: TokenLatency | None
    run_file: Path | None

    @property
    def name(self) -> str:
        """What the run is called: unique in a study."""
        return f"{self.model} {self.quantization}"

    @property
    def is_measured(self) -> bool:
        return self.latency is None and self.run_file is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """A whole study."""

    title: str
    tasks: tuple[StudyTask, ...]
    runs: tuple[StudyRun, ...]
    #: Whose accuracy is 1.
    reference: str
    reference_accuracies: tuple[Path, ...]
    #: What is measured: a prefill of each length, and `n_gen` tokens after it.
    prompt_lengths: tuple[int, ...]
    n_gen: int
    n_processes: int
    device: str
    #: None takes the physical cores.
    n_threads: int | None


#: The schema that is read.
SCHEMA = 1

_DEFAULT_SCENARIO = "p64-g16"
_DEFAULT_GEN, _DEFAULT_PROCESSES = 16, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    name: Name
    accuracies: _Names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Latency:
    prefill_s_per_token: _Time
    decode_s_per_token: _Time

    def known(self) -> TokenLatency:
        samples_s = (self.prefill_s_per_token,), (self.decode_s_per_token,)
        return TokenLatency(prefill_samples_s=samples_s[0], decode_samples_s=samples_s[1], source="given")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    quantization: Name
    accuracies: _Names
    weights: Name | None = None
    latency: _Latency | None = None
    run_file: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    name: Name
    suite: Name | None = None
    original: Name | None = None
    run: tuple[_Run, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    reference: _Reference
    title: Name = "Model-suite study"
    scenario: Name | None = None
    prompts: Name | None = None
    n_gen: Size | None = None
    replicates: Size = _DEFAULT_PROCESSES
    device: Name = "host"
    threads: Size | None = None
    task: tuple[StudyTask, ...] = ()
    model: tuple[_Model, ...] = ()


def read_plan(path: Path) -> StudyPlan:
    """Read a plan; relative paths in it are relative to its own folder.

    Raises `PerfsuiteError`: the file cannot be read or is no TOML, a field is missing, unknown or of another type,
    names repeat, the device is unknown, or a file of prompts cannot be read.
    """
    plan = read_toml(path, _Plan, PerfsuiteError, "see docs/study.md", schema=SCHEMA, is_closed=True)
    for name in ("task", "model"):
        if not getattr(plan, name):
            raise PerfsuiteError(f"{path}: {name} is missing, expected at least one table [[{name}]]")
    runs = tuple(run for place, each in enumerate(plan.model) for run in _runs(path, f"model[{place}]", each))
    for what, named in (("task", [each.name for each in plan.task]), ("run", [each.name for each in runs])):
        name, count = Counter(named).most_common(1)[0]
        if count > 1:
            raise PerfsuiteError(f"{path}: {what} {name!r} occurs {count} times, expected once")
    lengths, n_gen = _lengths(path, plan)
    try:
        device = find_profile(plan.device).name
    except DeviceError:
        _reject(path, "device", plan.device, f"one of {', '.join(profile_names())}")
    return StudyPlan(
        title=plan.title,
        tasks=plan.task,
        runs=runs,
        reference=plan.reference.name,
        reference_accuracies=_paths(path, plan.reference.accuracies),
        prompt_lengths=lengths,
        n_gen=n_gen,
        n_processes=plan.replicates,
        device=device,
        n_threads=plan.threads,
    )


def _lengths(path: Path, plan: _Plan) -> tuple[tuple[int, ...], int]:
    if plan.prompts is not None:
        if plan.scenario is not None:
            _reject(path, "scenario", plan.scenario, "to be left out beside prompts")
        return prompt_lengths(path.parent / plan.prompts), plan.n_gen or _DEFAULT_GEN
    if plan.n_gen is not None:
        _reject(path, "n_gen", plan.n_gen, "to be left out beside a scenario, which has its own")
    scenario = find_scenario(plan.scenario or _DEFAULT_SCENARIO)
    if not scenario.n_prompt or not scenario.n_gen or scenario.n_depth:
        _reject(path, "scenario", plan.scenario, "a prompt and a generation, without a depth")
    return (scenario.n_prompt,), scenario.n_gen


def _runs(path: Path, where: str, model: _Model) -> Iterator[StudyRun]:
    known = [run.quantization for run in model.run]
    if not known:
        raise PerfsuiteError(f"{path}: {where}: run is missing, expected at least one table [[model.run]]")
    if model.original is not None and model.original not in known:
        _reject(path, f"{where}.original", model.original, f"one of {', '.join(known)}")
    for place, run in enumerate(model.run):
        if run.latency is not None and run.run_file is not None:
            _reject(path, f"{where}.run[{place}].run_file", run.run_file, "to be left out beside a latency")
        weights = run.weights or f"{model.name}-{run.quantization}"
        is_path = weights.endswith(".gguf") or "/" in weights or os.path.isfile(path.parent / weights)
        yield StudyRun(
            model=model.name,
            suite=model.suite or model.name,
            quantization=run.quantization,
            is_original=run.quantization == model.original,
            weights=str(path.parent / weights) if is_path else weights,
            accuracies=_paths(path, run.accuracies),
            latency=run.latency.known() if run.latency else None,
            run_file=None if run.run_file is None else path.parent / run.run_file,
        )


def _paths(path: Path, names: _Names) -> tuple[Path, ...]:
    return tuple(path.parent / each for each in ([names] if isinstance(names, str) else names))


def _reject(path: Path, name: str, value: object, accepted: str) -> NoReturn:
    raise PerfsuiteError(f"{path}: {name} is {value!r}, expected {accepted}")
