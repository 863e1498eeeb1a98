"""``perfsuite prompts``."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, check_picture, draw, give, tell_picture
from perfsuite.cli.command_help import Commands, add_command, add_options
from perfsuite.cli.run_options import add_answer
from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.prompt_chart import prompt_chart
from perfsuite.units import format_count
from perfsuite.workload.prompt_subset import BINS_PER_OCTAVE, Subset, choose_subset, histogram, random_divergences_nats
from perfsuite.workload.prompts import LengthSource, Prompt, prompts_text, read_prompts

#: Raised whenever a field of the JSON changes its meaning.
_SCHEMA = 1
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")
_MOST_DRAWS = 100_000


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "prompts",
        about="""
        The Kullback-Leibler divergence of the two length histograms, four bins an octave, stays below a limit. 'pytest
        --device=host --prompts FILE' runs the subset.
        """,
        examples={"perfsuite prompts questions.jsonl --keep=10% --output=few.jsonl": "a tenth of them"},
        see=("docs/study.md",),
        options=[
            (
                "files FILE...",
                "JSON lines with prompt, text, question or n_tokens; CSV with n_tokens; or one length a line",
                Path,
            ),
            ("--keep SHARE|N", "how many, such as 10%% or 238 (default 10%%)", None, "10%"),
            ("--max-kl NATS", "largest divergence, nats (default 0.1)", float, 0.1),
            ("--seed N", "seed that chooses among equal lengths (default 0)", int, 0),
            ("--model GGUF", "count tokens with this file's tokenizer", Path),
            (
                "--random N",
                f"also show the divergence of N random subsets (default 0, at most {_MOST_DRAWS})",
                int,
                0,
            ),
        ],
    )
    add_options(
        add_answer(parser),
        ("--output FILE", "write the subset as JSON lines", Path),
        ("--plot FILE", "draw a picture (.svg)", Path),
    )
    parser.set_defaults(run=_prompts)


def _prompts(options: argparse.Namespace) -> int:
    _check(options)
    prompts = _read(options.files, options.model)
    lengths = tuple(prompt.n_tokens for prompt in prompts)
    n_keep = _n_keep(options.keep, len(prompts))
    subset = choose_subset(lengths, n_keep, max_kl_nats=options.max_kl, seed=options.seed)
    draws = random_divergences_nats(lengths, n_keep, options.random, options.seed)
    if options.output is not None:
        text = prompts_text([prompts[at] for at in subset.indices])
        write_whole_bytes(options.output, text.encode(), PerfsuiteError)
    if options.plot is not None:
        chart = prompt_chart(lengths, subset, name=", ".join(path.name for path in options.files))
        draw(chart, options.plot)
        tell_picture(options, options.plot, chart.title)
    parts, plain = _parts(prompts, subset, draws), _plain(prompts, subset, draws, options)
    return give(Answer(parts=parts, plain=plain), options)


def _check(options: argparse.Namespace) -> None:
    if not 0.0 <= options.max_kl < float("inf"):
        raise PerfsuiteError(f"--max-kl={options.max_kl}: expected a number of nats of 0 or more")
    if not 0 <= options.random <= _MOST_DRAWS:
        raise PerfsuiteError(f"--random={options.random}: expected 0 to {_MOST_DRAWS}")
    check_picture(options.plot)


def _read(paths: list[Path], gguf_path: Path | None) -> tuple[Prompt, ...]:
    count = None
    if gguf_path is not None:
        from perfsuite.measure.token_counts import count_tokens  # the engine, which lengths alone do not need

        count = partial(count_tokens, gguf_path)
    return tuple(prompt for path in paths for prompt in read_prompts(path, count))


def _n_keep(text: str, n_prompts: int) -> int:
    """Return how many to keep; of a share, the nearest whole number, and at least one."""
    share = _SHARE.fullmatch(text)
    if share is not None and 0.0 < float(share[1]) <= 100.0:
        return max(1, int(n_prompts * float(share[1]) / 100.0 + 0.5))
    if re.fullmatch(r"\d{1,9}", text) and 1 <= int(text) <= n_prompts:
        return int(text)
    raise PerfsuiteError(f"--keep={text}: expected a share such as 10%, or a number of 1 to {n_prompts}")


def _plain(
    prompts: tuple[Prompt, ...], subset: Subset, draws: tuple[float, ...], options: argparse.Namespace
) -> dict[str, Any]:
    lengths = [prompt.n_tokens for prompt in prompts]
    kept = [lengths[at] for at in subset.indices]
    whole_bins, kept_bins = histogram(lengths), histogram(kept)
    return {
        "schema": _SCHEMA,
        "files": [str(path) for path in options.files],
        "n_whole": len(lengths),
        "n_kept": len(kept),
        "seed": options.seed,
        "kl_nats": subset.kl_nats,
        "max_kl_nats": options.max_kl,
        "length_sources": _sources(prompts),
        "whole": _lengths_plain(lengths),
        "subset": _lengths_plain(kept),
        "random": {"n_draws": len(draws), "p5_kl_nats": _p5(draws), "median_kl_nats": median(draws)} if draws else None,
        "bins_per_octave": BINS_PER_OCTAVE,
        "histogram": [
            {"least_tokens": 2.0 ** (each / BINS_PER_OCTAVE), "n_whole": count, "n_kept": kept_bins.get(each, 0)}
            for each, count in whole_bins.items()
        ],
        "indices": list(subset.indices),
    }


def _lengths_plain(lengths: list[int]) -> dict[str, float]:
    return {
        "n_tokens": sum(lengths),
        "least_tokens": min(lengths),
        "mean_tokens": mean(lengths),
        "median_tokens": median(lengths),
        "most_tokens": max(lengths),
    }


def _sources(prompts: tuple[Prompt, ...]) -> dict[str, int]:
    return dict(Counter(prompt.length_source.value for prompt in prompts))


def _p5(draws: tuple[float, ...]) -> float:
    """Return the 5th percentile of values in ascending order: the largest that at most 5 in 100 are below."""
    return draws[len(draws) // 20]


def _parts(prompts: tuple[Prompt, ...], subset: Subset, draws: tuple[float, ...]) -> Iterator[Part]:
    lengths = [prompt.n_tokens for prompt in prompts]
    groups = {"whole": lengths, "subset": [lengths[at] for at in subset.indices]}
    told = {name: _lengths_plain(each) for name, each in groups.items()}
    yield Sheet(
        ("", ">prompts", ">tokens", ">shortest", ">mean", ">median", ">longest"),
        [
            (
                *(name, len(groups[name]), each["n_tokens"], each["least_tokens"]),
                *(f"{each['mean_tokens']:.2f}", each["median_tokens"], each["most_tokens"]),
            )
            for name, each in told.items()
        ],
    )
    yield f"D(subset || whole) is {subset.kl_nats:.4f} nats over {format_count(len(histogram(lengths)), 'bin')}"
    if draws:
        counted = format_count(len(draws), "random subset")
        yield f"{counted}: 5th percentile {_p5(draws):.4f}, median {median(draws):.4f}"
    if n_estimated := _sources(prompts).get(LengthSource.ESTIMATED.value):
        yield f"{format_count(n_estimated, 'length')} estimated from words; --model counts tokens"
