"""The command line and ini of a run, turned into one frozen `RunConfig`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.device.profile import Profile, find_profile, own_folders
from perfsuite.errors import HistoryError, PerfsuiteError, lack_of, require
from perfsuite.expectation.workload_request import WorkloadRequest
from perfsuite.experiments.run_config import OutputRequest, RunConfig
from perfsuite.option_table import DEFAULT_BUDGET, DEFAULT_MODEL, DEFAULT_SCENARIO, SHAPE_OPTIONS, SWEEPS
from perfsuite.plugin.board_options import asked_board, is_to_measure, on_farm_board
from perfsuite.plugin.conflicts import refuse_conflicts
from perfsuite.plugin.origin import new_run_id, run_origin
from perfsuite.plugin.registration import value_of
from perfsuite.plugin.values import asked_margins, asked_names, asked_ratio, asked_seconds
from perfsuite.records.events import GRAPH_PHASES
from perfsuite.records.history_place import HistoryPlace, history_place
from perfsuite.records.outcome import SUSPECT_EXIT
from perfsuite.records.own_files import user_cache
from perfsuite.verdict.allowance import DEFAULT_RESOLUTION_RATIO, DEFAULT_STEP_SHARE_RATIO
from perfsuite.workload.prompts import prompt_lengths, prompts_scenario
from perfsuite.workload.scenario import MOST_TOKENS, Scenario, find_scenario
from perfsuite.workload.weights import resolve

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.request import HuntRequest
    from perfsuite.measure.opencl_backend import OpenClBackend

_OFF = "off"


def asked_outputs(config: pytest.Config) -> OutputRequest:
    """Return what the options ask for.

    Raises pytest.UsageError: the history is to lie at an address that is none of S3's.
    """
    return OutputRequest(writes_report=config.option.perf_report == "on", history=_history(config))


def _history(config: pytest.Config) -> HistoryPlace | None:
    named: str | None = config.option.perf_history
    if named == _OFF:
        return None
    if not named:
        return None if lack_of("duckdb") else config.rootpath / ".perfsuite" / "history"
    try:
        place = history_place(named, "--perf-history=")
        require("duckdb", f"--perf-history={named}", HistoryError)
    except HistoryError as error:
        raise pytest.UsageError(str(error)) from error
    return place.absolute() if isinstance(place, Path) else place


_INJECTABLE_PHASES = tuple(phase.value for phase in GRAPH_PHASES)

_SUSPECT_EXITS = {"pass": 0, "fail": 1}


def _is_opencl(option: argparse.Namespace) -> bool:
    return bool(option.perf_backend == "opencl")


def resolve_config(config: pytest.Config) -> RunConfig:
    """Check every option and resolve what it names; any mistake is one line.

    Raises pytest.UsageError: an option's value is not accepted, or what it names is missing or broken.
    """
    refuse_conflicts(config.option)
    try:
        return _on_farm(config, _resolve(config))
    except PerfsuiteError as error:
        raise pytest.UsageError(str(error)) from None


def _on_farm(config: pytest.Config, run: RunConfig) -> RunConfig:
    """Borrow the board where a farm is asked for, last of all: nothing that is waited for is lost by a mistake."""
    profile = on_farm_board(config, run.profile) if is_to_measure(config.option) else run.profile
    if profile is run.profile:
        return run
    board = asked_board(config.option, profile, run.origin.run_id, cache_dir=run.cache_dir)
    return replace(run, profile=profile, board=board)


#: What no run is asked for that counts alone.
_TIMED = (
    *("--perf-sweep", "--perf-fidelity", "--perf-overhead", "--perf-trace", "--perf-shapes", "--perf-inject"),
    *("--against", "--against-model", "--against-args", "--perf-plan", "--perf-ingest", "--farm", "--threads"),
    *("--lora-rank", "--draft", "--mmproj", "--prompts"),
)


def _refuse_untimed(option: argparse.Namespace, profile: Profile) -> None:
    """Refuse what a device cannot answer on which work is counted and no time is measured."""
    if option.perf_counts_old is not None and option.perf_counts is None and profile.counts_for is None:
        raise pytest.UsageError(f"--perf-counts-old={option.perf_counts_old}: counts what is old; add --perf-counts")
    if profile.counts_for is not None:
        given = [name for name in _TIMED if value_of(option, name) not in (None, False)]
        if _is_opencl(option):
            given.append("--backend=opencl")
        if given:
            told = f"{profile.name} counts one model on one thread, and measures no time"
            raise pytest.UsageError(f"{given[0]}: {told}; leave it out, or name another device")


def _resolve(config: pytest.Config) -> RunConfig:
    option, own_dir = config.option, config.rootpath / ".perfsuite"
    shapes = _shapes(config)
    profile = find_profile(option.perf_device, folders=own_folders(config.rootpath))
    cache_dir = user_cache()
    _refuse_untimed(option, profile)
    lengths, scenario = _prompts(option, profile)
    injected, inject_ratio = _injection(option.perf_inject)
    model, run_id = option.perf_model or profile.default_model or DEFAULT_MODEL, new_run_id()
    weights = resolve(model, cache_dir=cache_dir / "models")
    board = asked_board(option, profile, run_id, cache_dir=cache_dir)
    if board.is_local and shapes is not None:
        _refuse_without_opencl(shapes)
    engine = board.find_engine(None) if board.is_local else None
    run = RunConfig(
        profile=profile,
        board=board,
        workload=WorkloadRequest.of(option, prefix="perf_").workload(
            weights, scenario, flash_attn=_flash_attn(option.perf_flash_attn, None), models_dir=cache_dir / "models"
        ),
        asked_threads=None if option.perf_threads is None else _positive(option, "--threads"),
        backend=option.perf_backend,
        baseline_mode=option.perf_baseline,
        baseline_dir=_directory(option.perf_baseline_dir, config.rootpath / "baselines"),
        local_baseline_dir=own_dir / "baselines",
        run_dir=_directory(option.perf_dir, own_dir / "runs" / run_id),
        cache_dir=cache_dir,
        n_replicates=_positive(option, "--perf-replicates"),
        margins=asked_margins(config, profile),
        session_spread_ratio=asked_ratio(config, "perf_session_spread", profile.session_spread_ratio),
        most_resolution_ratio=asked_ratio(config, "perf_resolution", DEFAULT_RESOLUTION_RATIO),
        step_share_ratio=asked_ratio(config, "perf_step_share", DEFAULT_STEP_SHARE_RATIO, may_be_zero=True),
        strict=option.perf_strict,
        wait_quiet_s=asked_seconds("--perf-wait-quiet", option.perf_wait_quiet) if option.perf_wait_quiet else 0.0,
        allows_undecided=option.perf_allow_undecided,
        allows_other_output=option.perf_allow_different_output,
        suspect_exit=_SUSPECT_EXITS.get(option.perf_suspect, SUSPECT_EXIT),
        opencl_platform=option.perf_opencl_platform,
        inject_op=None if injected in _INJECTABLE_PHASES else injected,
        inject_phases=(injected,) if injected in _INJECTABLE_PHASES else (),
        budget_s=asked_seconds("--perf-budget", option.perf_budget or DEFAULT_BUDGET),
        inject_ratio=inject_ratio,
        model=model,
        sweeps=asked_names("--perf-sweep", option.perf_sweep, SWEEPS) if option.perf_sweep else (),
        quick_calibration=option.perf_calibrate == "quick" and not (option.perf_plan or option.perf_ingest),
        is_planned=bool(option.perf_plan),
        long_sweeps=option.perf_long,
        fidelity=option.perf_fidelity,
        overhead=option.perf_overhead,
        experiments=tuple(dict.fromkeys(option.perf_experiment.split(","))) if option.perf_experiment else (),
        trace=option.perf_trace,
        counts="" if option.perf_counts is None and profile.counts_for else option.perf_counts,
        counts_old=option.perf_counts_old,
        shapes=shapes,
        prompt_lengths=lengths,
        origin=run_origin(config, run_id, engine),
        outputs=asked_outputs(config),
        left_out={"history": lack} if not option.perf_history and (lack := lack_of("duckdb")) else {},
    )
    return on_backend(run, option) if board.is_local else run


def _shapes(config: pytest.Config) -> HuntRequest | None:
    """Return which hunts for shapes the options ask for, if any."""
    if config.option.perf_shapes is None:
        if given := [name for name in SHAPE_OPTIONS if value_of(config.option, name) is not None]:
            raise pytest.UsageError(f"{given[0]}: says what shapes are hunted for; give --perf-shapes as well")
        return None
    from perfsuite.plugin.hunt_options import asked_hunts  # what the extra for shapes brings

    return asked_hunts(config)


def _refuse_without_opencl(shapes: HuntRequest) -> None:
    from perfsuite.plugin.hunt_options import refuse_without_opencl  # as above

    refuse_without_opencl(shapes)


def on_backend(run: RunConfig, option: argparse.Namespace) -> RunConfig:
    """Return the run with the OpenCL backend that its board has, where that is asked for.

    Raises PerfsuiteError: the board has no such platform, no backend for its engine, or no layer to follow it.
    """
    if not _is_opencl(option):
        return run
    opencl = run.backend_of(run.engine)
    settings = replace(run.workload.settings, flash_attn=_flash_attn(option.perf_flash_attn, opencl))
    return replace(run, opencl=opencl, workload=replace(run.workload, settings=settings))


def _flash_attn(given: str | None, opencl: OpenClBackend | None) -> bool:
    return given == "on" if given else opencl is None or not opencl.device.is_cpu


def _scenario(option: argparse.Namespace, profile: Profile) -> Scenario:
    """Return the scenario, or one by the lengths that options give; what they leave out is the scenario's."""
    scenario = find_scenario(option.perf_scenario or profile.default_scenario or DEFAULT_SCENARIO)
    lengths = {name: getattr(option, f"perf_{name}") for name in ("n_prompt", "n_gen", "n_depth")}
    if all(value is None for value in lengths.values()):
        return scenario
    for name, value in lengths.items():
        if value is not None and not 0 <= value <= MOST_TOKENS:
            raise pytest.UsageError(f"--{name.replace('_', '-')}={value}: expected 0 to {MOST_TOKENS} tokens")
    n_prompt, n_gen, n_depth = (getattr(scenario, name) if value is None else value for name, value in lengths.items())
    return find_scenario(f"p{n_prompt}-g{n_gen}" + (f"-d{n_depth}" if n_depth else ""))


def _prompts(option: argparse.Namespace, profile: Profile) -> tuple[tuple[int, ...], Scenario]:
    """Return the lengths of the prompts of a file, () without one, and the scenario that they make."""
    scenario = _scenario(option, profile)
    if not option.perf_prompts:
        return (), scenario
    lengths = prompt_lengths(Path(option.perf_prompts))
    return lengths, prompts_scenario(lengths, scenario.n_gen, n_depth=scenario.n_depth)


def _directory(given: str | None, default: Path) -> Path:
    return Path(given).absolute() if given else default


def _positive(option: argparse.Namespace, name: str) -> int:
    value: int = value_of(option, name)
    if value < 1:
        raise pytest.UsageError(f"{name}={value}: expected an integer of 1 or more")
    return value


def _injection(text: str | None) -> tuple[str | None, float]:
    if text is None:
        return None, 0.0
    op, _, ratio = text.partition("=")
    try:
        return op, float(ratio)
    except ValueError:
        raise pytest.UsageError(f"--perf-inject={text}: expected OPERATOR=RATIO, such as MUL_MAT=0.2") from None
