"""``perfsuite forecast`` (forecast): forecast TTFT and TPOT of a request on a device."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

from perfsuite.cli.answer import give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.forecast_answer import AskedForecast, calibrated_forecast, forecast_answer
from perfsuite.cli.forecast_device import add_device_options, asked_device, device_rates
from perfsuite.cli.run_options import answer_group
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import Passes, compose, passes_of
from perfsuite.expectation.requests.forecast import forecast_request
from perfsuite.expectation.requests.speculative_passes import SpeculativePasses
from perfsuite.expectation.requests.subject import Optimisations, Subject, find_subject
from perfsuite.expectation.speculation import Speculation, check_vocabularies
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
    subject = find_subject(options.architecture)
    passes = _with_draft(options, passes_of(subject, optimisations, conventions), subject, optimisations, conventions)
    request = compose(passes, options.prompt, options.new_tokens)
    return AskedForecast(
        architecture=subject.architecture.name,
        device=options.device,
        conventions=conventions,
        optimisations=optimisations,
        draft=options.draft,
        n_prompt=options.prompt,
        rates=rates,
        forecast=forecast_request(request, rates, conventions),
        calibrated=None
        if options.draft
        else calibrated_forecast(
            device, subject, optimisations, conventions, n_prompt=options.prompt, n_gen=options.new_tokens
        ),
        measured_ttft_s=options.measured_ttft_s,
        measured_tpot_s=options.measured_tpot_s,
    )


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


def _with_draft(
    options: argparse.Namespace,
    target: Passes,
    subject: Subject,
    optimisations: Optimisations,
    conventions: Conventions,
) -> Passes:
    """Put a draft before the target where one is asked for; it runs like the target, without adapters."""
    wanted = {"--acceptance": options.acceptance, "--draft-tokens": options.draft_tokens}
    given = {name: value for name, value in wanted.items() if value is not None}
    if options.draft is None:
        if given:
            raise PerfsuiteError(f"{' and '.join(given)}: there is no draft; expected --draft with an architecture")
        return target
    draft = _draft(options.draft, subject)
    variant = optimisations.variant and replace(optimisations.variant, lora=False)
    bare = replace(optimisations, variant=variant, lora_rank=None, lora_merged=False)
    speculation = Speculation(
        n_draft=4 if options.draft_tokens is None else options.draft_tokens,
        acceptance_ratio=0.8 if options.acceptance is None else options.acceptance,
    )
    return SpeculativePasses(target, passes_of(draft, bare, conventions), speculation)


def _draft(text: str, target: Subject) -> Subject:
    draft = find_subject(text)
    check_vocabularies(text, draft.architecture, target.architecture)
    return draft
