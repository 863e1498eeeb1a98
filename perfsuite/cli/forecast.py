"""``perfsuite forecast``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.cli.answer import fields_of, give
from perfsuite.cli.command_help import Commands, add_command, add_json, add_options
from perfsuite.cli.forecast_answer import (
    AskedForecast,
    CalibratedForecast,
    SpeculationForecast,
    forecast_answer,
    is_covered,
)
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.run_options import answer_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.machine import default_threads
from perfsuite.device.profile import find_profile, profile_names, unknown_device
from perfsuite.errors import DeviceError, PerfsuiteError, meant
from perfsuite.expectation.graph import KV_PADDING
from perfsuite.expectation.llama_workload import N_UBATCH, LlamaWorkload
from perfsuite.expectation.operators.tiling import padded
from perfsuite.expectation.requests.analytic import (
    BYTES_PER_GB,
    OPS_PER_TOPS,
    S_PER_US,
    Conventions,
    DeviceRates,
    rates_of,
)
from perfsuite.expectation.requests.composition import Passes, SpeculativePasses, compose, passes_of
from perfsuite.expectation.requests.forecast import RequestForecast, forecast_request
from perfsuite.expectation.requests.subject import (
    EngineSubject,
    Optimisations,
    Subject,
    engine_request,
    find_any_subject,
)
from perfsuite.expectation.speculation import Speculation, check_vocabularies
from perfsuite.expectation.timing.engine_times import EngineTimes, phase_shapes
from perfsuite.experiments.said_passes import SaidPasses
from perfsuite.measure.board.protocol import board_name
from perfsuite.measure.ceiling_store import find_calibration, stored_ceilings
from perfsuite.measure.environment import environment_engine
from perfsuite.records.events import Phase
from perfsuite.units import NS_PER_S
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_metadata import left_out
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.variant import find_variant, variant_names

#: Longest prompt and longest generation that are counted in a few seconds and a few hundred megabytes.
_MOST_PROMPT = 1 << 20
_MOST_NEW_TOKENS = 1 << 17


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "forecast",
        about="""
        Nothing is measured. After 'perfsuite calibrate', the forecast has an interval; otherwise it uses peak and
        bandwidth alone. Decode figures are means over the generation.
        """,
        examples={
            "perfsuite forecast --architecture=smollm2-135m --prompt=64 --new-tokens=32 --device=host": (
                "on this machine"
            ),
            "perfsuite forecast --architecture=llama-2-7b --prompt=64 --new-tokens=64 --tops=2 --bandwidth=60": (
                "on any device"
            ),
        },
        see=("docs/forecasting.md",),
    )
    required = {"required": True}
    engine = Conventions.ENGINE.value
    add_options(
        parser.add_argument_group("request"),
        ("--architecture NAME|PATH", "model of the catalogue, config.json or .gguf file", required),
        ("--variant NAME", f"one of {', '.join(variant_names())}"),
        ("--prompt N", "prompt length, tokens", int, required),
        ("--new-tokens N", "tokens to generate", int, required),
        (
            "--conventions CONVENTIONS",
            "count as llama.cpp computes (engine) or as LIFE does (paper) (default engine)",
            None,
            engine,
        ),
    )
    add_options(
        parser.add_argument_group("device", "either --device, or --tops and --bandwidth"),
        ("--device NAME", "device profile, with what was measured of it"),
        ("--tops T", "peak, 10^12 operations/s", float),
        ("--bandwidth B", "memory bandwidth, GB/s", float),
        ("--compute-efficiency E", "share of the peak operations a second reached (default 1)", float, 1.0),
        ("--memory-efficiency E", "share of the peak bandwidth reached (default 1)", float, 1.0),
        ("--dispatch-us X", "cost of a dispatch, µs (default 0; with --device: measured)", float),
        ("--power-w P", "power while computing, W: adds the energy", float),
    )
    add_options(
        parser.add_argument_group("optimisations", "in addition to those of the variant"),
        ("--quantization Q", "type of weights, such as q4_k_m, instead of the variant's"),
        ("--kv-type T", "type of the KV cache, such as q8_0, instead of the variant's"),
        ("--batch N", "sequences generated in one batch (default 1)", int, 1),
        ("--chunk N", "prompt tokens computed at once (default 512; paper: the whole prompt)", int),
        ("--tile N", "pad prompt and context to a multiple of N (default 1)", int, 1),
        ("--lora-rank R", "rank of LoRA adapters (default 16 in a variant with LoRA)", int),
        ("--lora-merged", "adapters are merged into the weights"),
        ("--draft NAME|PATH", "architecture of a draft model"),
        ("--acceptance A", "chance that a draft token is accepted (default 0.8)", float),
        ("--draft-tokens N", "tokens that a draft proposes (default 4)", int),
    )
    answer = answer_group(parser)
    add_options(
        answer,
        ("--measured-ttft-s S", "measured TTFT, s: adds MBU and MFU of prefill", float),
        ("--measured-tpot-s S", "measured TPOT, s: adds MBU and MFU of decode", float),
    )
    add_json(answer)
    parser.set_defaults(run=_forecast)


def _forecast(options: argparse.Namespace) -> int:
    conventions = _conventions(options.conventions)
    _check(options)
    device = _asked_device(options)
    rates = _rates(options, device)
    optimisations = Optimisations(
        variant=None if options.variant is None else find_variant(options.variant),
        n_sequences=options.batch,
        **fields_of(options, "quantization", "kv_type", "lora_rank", "lora_merged", "chunk", "tile"),
    )
    subject = find_any_subject(options.architecture)
    speculation = _speculation(options)
    target = _counted(options, subject, optimisations, conventions, speculation)

    def forecast(passes: Passes) -> RequestForecast:
        return forecast_request(compose(passes, options.prompt, options.new_tokens), rates, conventions)

    speculated = calibrated = None
    if speculation is None:
        found = forecast(target.passes)
        if is_covered(optimisations, conventions):
            calibrated = _calibrated(device, target.workload)
    else:  # it runs like the target, without adapters
        variant = optimisations.variant and replace(optimisations.variant, lora=False)
        bare = replace(optimisations, variant=variant, lora_rank=None, lora_merged=False)
        draft = _counted(options, find_any_subject(options.draft), bare, conventions, speculation)
        check_vocabularies(options.draft, draft.model, target.model)
        found = forecast(SpeculativePasses(target.passes, draft.passes, speculation))
        plain_s = forecast(target.passes).decode.time_s
        speculated = SpeculationForecast(speculation, plain_s, found.decode.time_s)
    asked = AskedForecast(
        architecture=subject.name,
        left_out=left_out(Path(options.architecture)),
        conventions=conventions,
        optimisations=optimisations,
        n_prompt=options.prompt,
        rates=rates,
        forecast=found,
        speculated=speculated,
        calibrated=calibrated,
        **fields_of(options, "device", "draft", "measured_ttft_s", "measured_tpot_s"),
    )
    return give(forecast_answer(asked), options)


def _check(options: argparse.Namespace) -> None:
    lengths = (("--prompt", options.prompt, _MOST_PROMPT), ("--new-tokens", options.new_tokens, _MOST_NEW_TOKENS))
    for option, value, most in lengths:
        if not 1 <= value <= most:
            raise PerfsuiteError(f"{option}={value}: expected an integer from 1 to {most}")
    for option, seconds in (("ttft", options.measured_ttft_s), ("tpot", options.measured_tpot_s)):
        if seconds is not None and not 0.0 < seconds < math.inf:
            raise PerfsuiteError(f"--measured-{option}-s={seconds:g}: expected seconds above 0")


def _conventions(name: str) -> Conventions:
    known = [each.value for each in Conventions]
    if name not in known:
        raise PerfsuiteError(f"--conventions={name}: unknown; accepted are {', '.join(known)}{meant(name, known)}")
    return Conventions(name)


def _speculation(options: argparse.Namespace) -> Speculation | None:
    wanted = {"--acceptance": options.acceptance, "--draft-tokens": options.draft_tokens}
    given = [name for name, value in wanted.items() if value is not None]
    if options.draft is None:
        if given:
            raise PerfsuiteError(f"{' and '.join(given)}: there is no draft; expected --draft with an architecture")
        return None
    return Speculation(
        n_draft=4 if options.draft_tokens is None else options.draft_tokens,
        acceptance_ratio=0.8 if options.acceptance is None else options.acceptance,
    )


# what is counted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """A model of which somebody counts the passes."""

    passes: Passes
    model: Architecture | ModelShape
    #: What a calibration is asked about.
    workload: Callable[[], LlamaWorkload]


def _counted(
    options: argparse.Namespace,
    subject: Subject | EngineSubject,
    optimisations: Optimisations,
    conventions: Conventions,
    speculation: Speculation | None,
) -> _Counted:
    if isinstance(subject, Subject):
        return _Counted(
            passes=passes_of(subject, optimisations, conventions),
            model=subject.architecture,
            workload=lambda: _asked_workload(subject, optimisations, options.prompt, options.new_tokens),
        )
    if conventions is Conventions.PAPER:
        raise PerfsuiteError(f"--conventions=paper: {subject.name} is of no family that the paper's template counts")
    n_draft = 0 if speculation is None else speculation.n_draft
    said = SaidPasses(subject, optimisations, options.prompt, options.new_tokens, n_draft, user_cache())
    return _Counted(passes=said, model=said.workload.weights.shape, workload=lambda: said.workload)


def _asked_workload(subject: Subject, optimisations: Optimisations, n_prompt: int, n_gen: int) -> LlamaWorkload:
    scenario = Scenario(name="forecast", n_prompt=n_prompt, n_gen=n_gen, source="given by its lengths")
    n_ctx, n_ubatch = padded(scenario.n_ctx, KV_PADDING), optimisations.chunk or N_UBATCH
    return engine_request(subject, optimisations).workload(scenario, n_ctx=n_ctx, n_ubatch=n_ubatch)


# the device: two figures, or what is kept of a machine that was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What tells the measurements of one device from those of others."""

    name: str
    fingerprint: Mapping[str, str]
    n_threads: int
    #: Of a board its engine's; None for this machine's, which is looked for when a calibration is.
    build_id: str | None = None
    #: The identity of a board at the end of a link; None for this machine.
    board: str | None = None


def _calibrated(device: _Measured | None, workload_of: Callable[[], LlamaWorkload]) -> CalibratedForecast | None:
    """Forecast a request from the stored calibration; None where there is none."""
    if device is None:
        return None
    build_id = device.build_id or environment_engine().build_id
    calibration = find_calibration(device.fingerprint, build_id, device.n_threads, user_cache(), board=device.board)
    if calibration is None:
        return None
    times, workload = EngineTimes(calibration), workload_of()
    ttft, tpot = (times.phase(phase_shapes(workload, phase), phase.value) for phase in (Phase.PREFILL, Phase.DECODE))
    return CalibratedForecast(recorded_at=calibration.recorded_at, ttft=ttft, tpot=tpot)


def _asked_device(options: argparse.Namespace) -> _Measured | None:
    """Return the device of the options; None where they have figures instead.

    Raises PerfsuiteError: there is no such device, both are given or none, or a board cannot be reached or taken.
    """
    figures = {"--tops": options.tops, "--bandwidth": options.bandwidth}
    given = [name for name, value in figures.items() if value is not None]
    if options.device is None:
        missing = [name for name in figures if name not in given]
        if missing:
            raise PerfsuiteError(f"{' and '.join(missing)}: missing; expected --tops and --bandwidth, or --device")
        return None
    if given:
        raise PerfsuiteError(f"--device={options.device} with {' and '.join(given)}: expected one or the other")
    if options.device not in profile_names():
        told = unknown_device(options.device, "--device=")
        raise DeviceError(f"{told}; --tops and --bandwidth describe one that has no profile")
    profile = find_profile(options.device)
    if profile.reach.way == "local":
        return _Measured(name=profile.name, fingerprint=host_fingerprint(), n_threads=default_threads())
    # a board is asked what it is, with its governor, which is a part of that; it need not be cool
    conditions = replace(profile.conditions, gpu_governor=None, start_below_celsius=None, least_battery_ratio=None)
    with taken_device(replace(profile, conditions=conditions), "forecast", options) as taken:
        facts = taken.board.facts()
        return _Measured(
            name=profile.name,
            fingerprint=facts.fingerprint,
            n_threads=facts.default_threads,
            build_id=facts.engine.build_id,
            board=board_name(taken.board).kept_by,
        )


def _rates(options: argparse.Namespace, device: _Measured | None) -> DeviceRates:
    """Return what a device gives, or the figures of the options; an impossible one is a PerfsuiteError."""
    tops, bandwidth, dispatch_us = (options.tops, options.bandwidth, 0.0) if device is None else _figures(device)
    return rates_of(
        tops=tops,
        bandwidth_gb_per_s=bandwidth,
        dispatch_us=dispatch_us if options.dispatch_us is None else options.dispatch_us,
        **fields_of(options, "compute_efficiency", "memory_efficiency", "power_w"),
    )


def _figures(device: _Measured) -> tuple[float, float, float]:
    """Return TOPS, GB/s and microseconds a dispatch; raises `DeviceError` where no ceilings are kept."""
    ceilings = stored_ceilings(device.fingerprint, device.n_threads, user_cache(), board=device.board)
    if ceilings is None:
        which = "of this machine" if device.board is None else f"of this very board ({device.board[:8]})"
        sheet = "" if device.board is None else f" ('perfsuite devices show {device.name}' has the data sheet's)"
        raise DeviceError(
            f"--device={device.name}: no ceilings {which} with {device.n_threads} threads are stored; measure them "
            f"with 'perfsuite calibrate --device={device.name}' or 'pytest --device={device.name}', or give --tops "
            f"and --bandwidth{sheet}"
        )
    return (
        ceilings.fp32_flops_per_s / OPS_PER_TOPS,
        ceilings.bandwidths[-1].read_bytes_per_s / BYTES_PER_GB,
        (ceilings.dispatch_ns or 0) / NS_PER_S / S_PER_US,
    )
