"""The command line and ini of a run, turned into one frozen `RunConfig`."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import platformdirs
import pytest

from perfsuite.device.profile import Profile, find_profile, own_folders
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import LlamaWorkload, llama_workload
from perfsuite.expectation.roofline.sweeps import SWEEPS
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.plugin.board_options import asked_board, is_to_measure
from perfsuite.plugin.durations import asked_seconds
from perfsuite.plugin.farm_options import on_farm_board
from perfsuite.plugin.margins import KindMargins, Margins, asked_ratio, parse_margins, parse_ratio
from perfsuite.plugin.option_table import DEFAULT_BUDGET, DEFAULT_MODEL
from perfsuite.plugin.origin import new_run_id, run_origin
from perfsuite.plugin.output_options import OutputRequest, asked_outputs
from perfsuite.plugin.shapes.hunt_options import HuntRequest, asked_hunts
from perfsuite.records.events import Phase
from perfsuite.records.run_origin import NO_ORIGIN, RunOrigin
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.resolution import DEFAULT_RESOLUTION_RATIO
from perfsuite.verdict.step_share import DEFAULT_STEP_SHARE_RATIO
from perfsuite.workload.prompts import prompt_lengths, prompts_scenario
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_INJECTABLE_PHASES = (Phase.PREFILL.value, Phase.DECODE.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Everything that a run was asked for, resolved and checked."""

    profile: Profile
    #: What is measured; plans are made for it, and are run by it.
    board: Board
    workload: LlamaWorkload
    #: None leaves it to the board.
    asked_threads: int | None
    backend: str
    baseline_mode: str
    baseline_dir: Path
    #: Where a checkout keeps a reference of its own, which is never committed.
    local_baseline_dir: Path
    run_dir: Path
    cache_dir: Path
    n_replicates: int
    margins: Margins
    session_spread_ratio: float
    #: The coarsest resolution that a PASS may have.
    most_resolution_ratio: float
    #: Share of its step that a case may change by; 0 leaves it to the margin alone.
    step_share_ratio: float
    strict: bool
    opencl_platform: str | None
    #: Slowdowns on purpose: of an operator, or of a phase.
    inject_op: str | None
    inject_phases: tuple[str, ...]
    inject_ratio: float
    #: Time for the pairs of a paired comparison, s.
    budget_s: float
    #: The model as it was asked for, and the sweeps around it.
    model: str
    sweeps: tuple[str, ...]
    long_sweeps: bool
    #: Whether a quick calibration forecasts, and is made, where no whole one is stored.
    quick_calibration: bool = False
    #: Another llama.cpp than the board's own.
    other_engine: Engine | None = None
    #: Whether the suite's own timings are held against ground truths.
    fidelity: bool = False
    #: Whether what following a run costs is measured.
    overhead: bool = False
    #: Whether a run is traced, and judged by what the trace shows.
    trace: bool = False
    #: What hunts for shapes were asked for; None without any.
    shapes: HuntRequest | None = None
    #: The engine's OpenCL backend on its device; None with another backend.
    opencl: OpenClBackend | None = None
    #: Lengths of the prompts that each process runs; () runs the scenario's.
    prompt_lengths: tuple[int, ...] = ()
    #: How long quiet is waited for on a machine that is busy, s; 0 measures all the same.
    wait_quiet_s: float = 0.0
    #: Whether a run that judged nothing ends with 0.
    allows_undecided: bool = False
    #: What pairs compare with; None compares with stored baselines.
    old: RunConfig | None = None
    #: The same as it was asked for.
    old_text: str = ""
    #: The session of the baseline whose engine the pairs measure again; None of an old side that an option names.
    old_session: StoredSession | None = None
    #: How the machine that made it differed from this one.
    old_differences: tuple[str, ...] = ()
    #: Where the run comes from, and what it writes.
    origin: RunOrigin = NO_ORIGIN
    outputs: OutputRequest = field(default_factory=OutputRequest)
    #: When it began, by `time.monotonic`.
    began_s: float = field(default_factory=time.monotonic)

    @property
    def is_against(self) -> bool:
        """Whether an option names an old side, so that stored baselines do not count."""
        return self.old is not None and self.old_session is None

    @property
    def engine(self) -> Engine:
        """The llama.cpp that is measured."""
        return self.other_engine or self.board.facts().engine

    @property
    def n_threads(self) -> int:
        """Threads of the engine."""
        return self.asked_threads or self.board.facts().default_threads

    @property
    def log_dir(self) -> Path:
        """Where workers keep logs: beside the run's files, or in the board's own cache."""
        return self.run_dir if self.board.is_local else self.board.facts().cache_dir / "logs"


def resolve_config(config: pytest.Config) -> RunConfig:
    """Check every option and resolve what it names; any mistake is one line.

    Raises
    ------
    pytest.UsageError
        An option's value is not accepted, or what it names is missing or broken.
    """
    try:
        return _on_farm(config, _resolve(config))
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None


def _on_farm(config: pytest.Config, run: RunConfig) -> RunConfig:
    """Borrow the board where a farm is asked for, last of all: nothing that is waited for is lost by a mistake."""
    option = config.option
    if option.farm is not None and option.perf_address is not None:
        raise pytest.UsageError(f"--perf-address={option.perf_address}: a farm says where its board is; leave it out")
    profile = on_farm_board(config, run.profile) if is_to_measure(option) else run.profile
    if profile is run.profile:
        return run
    board = asked_board(option, profile, run.origin.run_id, cache_dir=run.cache_dir)
    return replace(run, profile=profile, board=board)


def _resolve(config: pytest.Config) -> RunConfig:
    option = config.option
    _refuse_in_pairs(option)
    shapes = asked_hunts(option)
    if option.perf_trace and option.backend != "cpu":
        raise pytest.UsageError("--perf-trace: follows the processor's operators; leave out --backend=opencl")
    profile = find_profile(option.device, folders=own_folders(config.rootpath))
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite"))
    lengths = _prompt_lengths(option)
    scenario = find_scenario(option.scenario)
    if lengths:
        scenario = prompts_scenario(lengths, scenario.n_gen, n_depth=scenario.n_depth)
    injected, inject_ratio = _injection(option.perf_inject)
    if injected and option.baseline == "record":
        raise pytest.UsageError(
            "--baseline=record: a run with --perf-inject is slowed down on purpose, and no reference"
        )
    model = option.model or profile.default_model or DEFAULT_MODEL
    weights = resolve(model, cache_dir=cache_dir / "models")
    run_id = new_run_id()
    board = asked_board(option, profile, run_id, cache_dir=cache_dir)
    engine = board.find_engine(None) if board.is_local else None
    platform = option.perf_opencl_platform or profile.opencl_platform
    opencl = _opencl(engine, platform, cache_dir) if engine and option.backend == "opencl" else None
    workload = llama_workload(weights, scenario, flash_attn=_flash_attn(option.perf_flash_attn, opencl))
    return RunConfig(
        profile=profile,
        board=board,
        workload=workload,
        asked_threads=None if option.threads is None else _positive("--threads", option.threads),
        backend=option.backend,
        baseline_mode=option.baseline,
        baseline_dir=_directory(option.baseline_dir, config.rootpath / "baselines"),
        local_baseline_dir=config.rootpath / ".perfsuite" / "baselines",
        run_dir=_directory(option.perf_dir, config.rootpath / ".perfsuite" / "runs" / run_id),
        cache_dir=cache_dir,
        n_replicates=_positive("--perf-replicates", option.perf_replicates),
        margins=_margins(config, profile),
        session_spread_ratio=_session_spread_ratio(config, profile),
        most_resolution_ratio=asked_ratio(config, "perf_resolution", DEFAULT_RESOLUTION_RATIO),
        step_share_ratio=asked_ratio(config, "perf_step_share", DEFAULT_STEP_SHARE_RATIO, may_be_zero=True),
        strict=option.perf_strict,
        wait_quiet_s=asked_seconds("--perf-wait-quiet", option.perf_wait_quiet) if option.perf_wait_quiet else 0.0,
        allows_undecided=option.perf_allow_undecided,
        opencl_platform=option.perf_opencl_platform,
        inject_op=None if injected in _INJECTABLE_PHASES else injected,
        inject_phases=(injected,) if injected in _INJECTABLE_PHASES else (),
        budget_s=asked_seconds("--perf-budget", option.perf_budget or DEFAULT_BUDGET),
        inject_ratio=inject_ratio,
        model=model,
        sweeps=_sweeps(option),
        quick_calibration=option.perf_calibrate == "quick",
        long_sweeps=option.perf_long,
        fidelity=option.perf_fidelity,
        overhead=option.perf_overhead,
        trace=option.perf_trace,
        shapes=shapes,
        opencl=opencl,
        prompt_lengths=lengths,
        origin=run_origin(config, run_id, engine),
        outputs=asked_outputs(config),
    )


def _prompt_lengths(option: argparse.Namespace) -> tuple[int, ...]:
    if not option.prompts:
        return ()
    others = {
        "--perf-sweep": option.perf_sweep,
        "--perf-fidelity": option.perf_fidelity,
        "--perf-overhead": option.perf_overhead,
        "--perf-trace": option.perf_trace,
        "--against": option.against or option.against_model or option.against_args,
        "--backend=opencl": option.backend == "opencl",
    }
    if taken := [name for name, value in others.items() if value]:
        raise pytest.UsageError(f"--prompts={option.prompts}: runs on its own; leave out {', '.join(taken)}")
    return prompt_lengths(Path(option.prompts))


def _opencl(engine: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
    from perfsuite.measure.opencl_setup import set_up_opencl

    return set_up_opencl(engine, platform, cache_dir)


def _flash_attn(given: str | None, opencl: OpenClBackend | None) -> bool:
    return given == "on" if given else opencl is None or not opencl.device.is_cpu


def _refuse_in_pairs(option: argparse.Namespace) -> None:
    """Refuse what a paired comparison cannot examine."""
    if not any((option.against, option.against_model, option.against_args)):
        return
    if option.perf_fidelity:
        raise pytest.UsageError("--perf-fidelity: a pair has no ground truth; leave out one or the other")
    if option.perf_overhead:
        raise pytest.UsageError("--perf-overhead: makes pairs of its own; leave out --against")
    if option.perf_trace:
        raise pytest.UsageError("--perf-trace: a trace is judged by expectations, not in pairs; leave out --against")


def _sweeps(option: argparse.Namespace) -> tuple[str, ...]:
    text = option.perf_sweep
    names = tuple(dict.fromkeys((text or "").replace(" ", "").split(","))) if text else ()
    if unknown := [name for name in names if name not in (*SWEEPS, "all")]:
        raise pytest.UsageError(
            f"--perf-sweep={text}: {unknown[0]!r} is unknown; accepted are {', '.join(SWEEPS)}, all"
        )
    if names and any((option.against, option.against_model, option.against_args)):
        raise pytest.UsageError(f"--perf-sweep={text}: sweeps have no old side; leave out one or the other")
    if names and option.backend != "cpu":
        raise pytest.UsageError(
            f"--perf-sweep={text}: sweeps stand under the processor's ceilings; leave out --backend"
        )
    return tuple(SWEEPS) if "all" in names else names


def _directory(given: str | None, default: Path) -> Path:
    return Path(given).absolute() if given else default


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise pytest.UsageError(f"{name}={value}: expected an integer of 1 or more")
    return value


def _margins(config: pytest.Config, profile: Profile) -> Margins:
    return Margins(
        command_line=parse_margins("--perf-margin=", config.option.perf_margin),
        ini=parse_margins("perf_margin = ", config.getini("perf_margin")),
        profile=KindMargins(by_kind_ratio=profile.margin_ratio),
    )


def _session_spread_ratio(config: pytest.Config, profile: Profile) -> float:
    text = config.getini("perf_session_spread") or str(profile.session_spread_ratio)
    return parse_ratio(text, f"perf_session_spread = {text}")


def _injection(text: str | None) -> tuple[str | None, float]:
    if text is None:
        return None, 0.0
    op, _, ratio = text.partition("=")
    try:
        return op, float(ratio)
    except ValueError:
        raise pytest.UsageError(f"--perf-inject={text}: expected OPERATOR=RATIO, such as MUL_MAT=0.2") from None
