"""``perfsuite forecast``."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.forecast_answer import (
    AskedForecast,
    SpeculationForecast,
    asked_workload,
    calibrated_forecast,
    forecast_answer,
)
from perfsuite.cli.forecast_device import add_device_options, asked_device, device_rates
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.run_options import answer_group
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import Passes, SpeculativePasses, compose, passes_of
from perfsuite.expectation.requests.forecast import RequestForecast, forecast_request
from perfsuite.expectation.requests.subject import EngineSubject, Optimisations, Subject, find_any_subject
from perfsuite.expectation.speculation import Speculation, check_vocabularies
from perfsuite.experiments.said_passes import SaidPasses
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.config_metadata import left_out
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.variant import find_variant, variant_names

_ABOUT = """
Nothing is measured. After 'perfsuite calibrate', the forecast has an interval; otherwise it uses peak and bandwidth
alone. Decode figures are means over the generation.
"""

_EXAMPLES = {
    "perfsuite forecast --architecture=smollm2-135m --prompt=64 --new-tokens=32 --device=host": "on this machine",
    "perfsuite forecast --architecture=llama-2-7b --prompt=64 --new-tokens=64 --tops=2 --bandwidth=60": "on any device",
}

#: Longest prompt and longest generation that are counted in a few seconds and a few hundred megabytes.
_MOST_PROMPT = 1 << 20
_MOST_NEW_TOKENS = 1 << 17


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(commands, "forecast", about=_ABOUT, examples=_EXAMPLES, see=("docs/forecasting.md",))
    request = parser.add_argument_group("request")
    text = "model of the catalogue, config.json or .gguf file"
    request.add_argument("--architecture", required=True, metavar="NAME|PATH", help=text)
    request.add_argument("--variant", metavar="NAME", help=f"one of {', '.join(variant_names())}")
    request.add_argument("--prompt", type=int, required=True, metavar="N", help="prompt length, tokens")
    request.add_argument("--new-tokens", type=int, required=True, metavar="N", help="tokens to generate")
    text = "count as llama.cpp computes (engine) or as LIFE does (paper) (default engine)"
    request.add_argument("--conventions", default=Conventions.ENGINE.value, help=text)
    add_device_options(parser)
    _add_optimisations(parser)
    answer = answer_group(parser)
    answer.add_argument(
        "--measured-ttft-s", type=float, metavar="S", help="measured TTFT, s: adds MBU and MFU of prefill"
    )
    answer.add_argument(
        "--measured-tpot-s", type=float, metavar="S", help="measured TPOT, s: adds MBU and MFU of decode"
    )
    add_json(answer)
    parser.set_defaults(run=_forecast)


def _add_optimisations(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("optimisations", "in addition to those of the variant")
    group.add_argument("--quantization", metavar="Q", help="type of weights, such as q4_k_m, instead of the variant's")
    group.add_argument("--kv-type", metavar="T", help="type of the KV cache, such as q8_0, instead of the variant's")
    group.add_argument("--batch", type=int, default=1, metavar="N", help="sequences generated in one batch (default 1)")
    text = "prompt tokens computed at once (default 512; paper: the whole prompt)"
    group.add_argument("--chunk", type=int, metavar="N", help=text)
    group.add_argument(
        "--tile", type=int, default=1, metavar="N", help="pad prompt and context to a multiple of N (default 1)"
    )
    group.add_argument(
        "--lora-rank", type=int, metavar="R", help="rank of LoRA adapters (default 16 in a variant with LoRA)"
    )
    group.add_argument("--lora-merged", action="store_true", help="adapters are merged into the weights")
    group.add_argument("--draft", metavar="NAME|PATH", help="architecture of a draft model")
    group.add_argument(
        "--acceptance", type=float, metavar="A", help="chance that a draft token is accepted (default 0.8)"
    )
    group.add_argument("--draft-tokens", type=int, metavar="N", help="tokens that a draft proposes (default 4)")


def _forecast(options: argparse.Namespace) -> int:
    give(forecast_answer(_asked(options)), options)
    return 0


def _asked(options: argparse.Namespace) -> AskedForecast:
    conventions = _conventions(options.conventions)
    _check(options)
    device = asked_device(options)
    rates = device_rates(options, device)
    optimisations = _optimisations(options)
    subject = find_any_subject(options.architecture)
    speculation = _speculation(options)
    target = _counted(options, subject, optimisations, conventions, speculation)
    passes = target.passes
    if speculation is not None:
        passes = _with_draft(options, target, optimisations, conventions, speculation)

    def forecast(by: Passes) -> RequestForecast:
        return forecast_request(compose(by, options.prompt, options.new_tokens), rates, conventions)

    found = forecast(passes)
    return AskedForecast(
        architecture=subject.name,
        left_out=left_out(Path(options.architecture)),
        device=options.device,
        conventions=conventions,
        optimisations=optimisations,
        draft=options.draft,
        n_prompt=options.prompt,
        rates=rates,
        forecast=found,
        speculated=None
        if speculation is None
        else SpeculationForecast(speculation, forecast(target.passes).decode.time_s, found.decode.time_s),
        calibrated=None if speculation else calibrated_forecast(device, target.workload, optimisations, conventions),
        measured_ttft_s=options.measured_ttft_s,
        measured_tpot_s=options.measured_tpot_s,
    )


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
            workload=lambda: asked_workload(subject, optimisations, options.prompt, options.new_tokens),
        )
    if conventions is Conventions.PAPER:
        raise PerfsuiteError(f"--conventions=paper: {subject.name} is of no family that the paper's template counts")
    n_draft = 0 if speculation is None else speculation.n_draft
    said = SaidPasses(subject, optimisations, options.prompt, options.new_tokens, n_draft, user_cache())
    return _Counted(passes=said, model=said.workload.weights.shape, workload=lambda: said.workload)


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


def _optimisations(options: argparse.Namespace) -> Optimisations:
    return Optimisations(
        variant=None if options.variant is None else find_variant(options.variant),
        quantization=options.quantization,
        kv_type=options.kv_type,
        lora_rank=options.lora_rank,
        lora_merged=options.lora_merged,
        chunk=options.chunk,
        n_sequences=options.batch,
        tile=options.tile,
    )


def _speculation(options: argparse.Namespace) -> Speculation | None:
    wanted = {"--acceptance": options.acceptance, "--draft-tokens": options.draft_tokens}
    given = {name: value for name, value in wanted.items() if value is not None}
    if options.draft is None:
        if given:
            raise PerfsuiteError(f"{' and '.join(given)}: there is no draft; expected --draft with an architecture")
        return None
    return Speculation(
        n_draft=4 if options.draft_tokens is None else options.draft_tokens,
        acceptance_ratio=0.8 if options.acceptance is None else options.acceptance,
    )


def _with_draft(
    options: argparse.Namespace,
    target: _Counted,
    optimisations: Optimisations,
    conventions: Conventions,
    speculation: Speculation,
) -> Passes:
    """Put a draft before the target; it runs like the target, without adapters."""
    variant = optimisations.variant and replace(optimisations.variant, lora=False)
    bare = replace(optimisations, variant=variant, lora_rank=None, lora_merged=False)
    draft = _counted(options, find_any_subject(options.draft), bare, conventions, speculation)
    check_vocabularies(options.draft, draft.model, target.model)
    return SpeculativePasses(target.passes, draft.passes, speculation)
