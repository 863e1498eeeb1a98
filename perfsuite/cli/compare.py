"""``perfsuite compare`` (measure): compare two builds of llama.cpp in pairs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet, take_behind_dashes
from perfsuite.errors import EngineError, PerfsuiteError

if TYPE_CHECKING:
    from perfsuite.cli.answer import Part
    from perfsuite.verdict.judge_files import FileChange

_ABOUT = """
OLD and NEW are each a folder (checkout, build, install prefix, libraries), a release or wheel of llama-cpp-python, a
kept build ('perfsuite engines list'), or with --source a revision. What is not built yet is compiled in a copy and
kept.

OLD and NEW may also be two files of llama-bench (-o json, jsonl or sql) or test-backend-ops (--output sql). Then
nothing is measured.
"""

_EXAMPLES = {
    "perfsuite compare master my-branch --source ../llama.cpp": "is my branch slower?",
    "perfsuite compare 0.3.35 0.3.36 -m model.gguf -p 512 -n 128 -- --perf-budget=3m": "two releases, with more time",
}


_FLASH = {"1": "on", "on": "on", "0": "off", "off": "off"}


def _flash(text: str) -> str:
    """Read llama-bench's 0 and 1, and our own words."""
    if text not in _FLASH:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor 1")
    return _FLASH[text]


def _number(help_text: str) -> dict[str, Any]:
    return {"type": int, "metavar": "N", "help": help_text}


#: Options as llama-bench has them: their names, that of pytest's, and the settings of argparse.
_SUBJECT: tuple[tuple[tuple[str, ...], str, dict[str, Any]], ...] = (
    (
        ("-m", "--model"),
        "--model",
        {
            "metavar": "PATH|NAME",
            "help": "GGUF file, or ARCHITECTURE-QUANTISATION of the catalogue (default smollm2-135m-q8_0)",
        },
    ),
    (("-p", "--n-prompt"), "--n-prompt", _number("prompt length, tokens")),
    (("-n", "--n-gen"), "--n-gen", _number("tokens to generate")),
    (("-d", "--n-depth"), "--n-depth", _number("tokens already in the KV cache")),
    (
        ("-ub", "--ubatch-size"),
        "--ubatch-size",
        _number("largest batch that is computed at once, tokens (default 512)"),
    ),
    (("-t", "--threads"), "--threads", _number("threads (default: physical cores)")),
    (
        ("-fa", "--flash-attn"),
        "--perf-flash-attn",
        {"type": _flash, "metavar": "0|1", "help": "flash attention (default: on; off for OpenCL on a CPU)"},
    ),
    (
        ("-ctk", "--cache-type-k"),
        "--cache-type-k",
        {"metavar": "TYPE", "help": "type of keys in the KV cache (default f16)"},
    ),
    (
        ("-ctv", "--cache-type-v"),
        "--cache-type-v",
        {"metavar": "TYPE", "help": "type of values in the KV cache (default f16)"},
    ),
    (("--lora-rank",), "--lora-rank", _number("rank of a synthetic LoRA adapter on every layer")),
    (("--parallel",), "--parallel", _number("sequences generated in one batch")),
    (
        ("--draft",),
        "--draft",
        {"metavar": "MODEL|ngram[:TOKENS[:ACCEPTANCE]]", "help": "speculative decoding with a draft model or n-grams"},
    ),
    (
        ("--mmproj",),
        "--mmproj",
        {"metavar": "PATH|NAME", "help": "projector of a vision model, which encodes an image first"},
    ),
)


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "compare",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="builds into the cache, and the files of a run",
        exits={1: "a case regressed, or could not be measured", 10: "nothing could be judged"},
        see=("docs/how-to/compare-two-builds.md",),
    )
    parser.add_argument("old", metavar="OLD", help="build to compare with")
    parser.add_argument("new", metavar="NEW", help="build to judge")
    parser.add_argument("--source", type=Path, metavar="DIR", help="checkout of the revisions")
    text = "shell command that builds a revision, with shared libraries"
    parser.add_argument("--build", metavar="COMMAND", help=text)
    subject = parser.add_argument_group("workload, with the options of llama-bench")
    for names, _, settings in _SUBJECT:
        subject.add_argument(*names, **settings)
    parser.add_argument("pytest_options", nargs="*", metavar="OPTION", help="options of pytest, after '--'")
    take_behind_dashes(parser, "pytest_options")
    add_json(parser, text="print run.json, or the tests of two files; pytest's own words go to standard error")
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _asked(options: argparse.Namespace) -> Iterator[str]:
    """Yield what pytest calls the options that were given."""
    for names, name, _ in _SUBJECT:
        value = getattr(options, names[-1].removeprefix("--").replace("-", "_"))
        if value is not None:
            yield f"{name}={value}"


def _run(options: argparse.Namespace) -> int:
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.cli.progress import progress
    from perfsuite.cli.pytest_run import run_pytest
    from perfsuite.measure.bundle.named_builds import Builder
    from perfsuite.measure.environment import ENGINE_NAME, program_environment
    from perfsuite.records.run_origin import own_option

    if Path(options.old).is_file() and Path(options.new).is_file():
        return _compare_files(options)
    if options.build is not None and options.source is None:
        raise EngineError("--build: says how revisions are built; name their checkout with --source")
    with progress("compare", options) as tell:
        builder = Builder(cache_dir=user_cache(), tell=tell.step, source=options.source, command=options.build)
        builder.check(options.old, options.new)
        old, new = builder.engine(options.old), builder.engine(options.new)
    told = f"old: {options.old}, build {old.build_id}\nnew: {options.new}, build {new.build_id}"
    print(told, flush=True, file=sys.stderr if options.json else sys.stdout)
    words = ["--perf-device=host", f"--perf-against={old.library_dir}", *map(own_option, _asked(options))]
    return run_pytest(words, options, environment=program_environment({ENGINE_NAME: str(new.library_dir)}))


def _compare_files(options: argparse.Namespace) -> int:
    """Compare what others measured."""
    from perfsuite.cli.answer import Answer, Sheet, give
    from perfsuite.device.profile import DEFAULT_MARGIN_RATIO
    from perfsuite.records.benchmark_files import read_benchmark
    from perfsuite.records.outcome import Outcome
    from perfsuite.units import format_change, format_count, format_ns
    from perfsuite.verdict.judge_files import judge_files, n_pairs_needed

    asked = [*_asked(options), *options.pytest_options]
    asked += [f"--{name}" for name in ("source", "build") if getattr(options, name) is not None]
    if asked:
        raise PerfsuiteError(f"{asked[0]}: says how builds are measured, and {options.old} is a file of what was")
    old, new = read_benchmark(Path(options.old)), read_benchmark(Path(options.new))
    changes = judge_files(old, new, margin_ratio=DEFAULT_MARGIN_RATIO)
    if not changes:
        raise PerfsuiteError(f"{options.new}: has no test of {options.old}; run both sides with the same options")
    counts = {outcome: sum(each.outcome is outcome for each in changes) for outcome in Outcome}
    n_alone, n_needed = len(old.keys() ^ new.keys()), n_pairs_needed(len(changes))
    decides = counts[Outcome.INCONCLUSIVE] < len(changes)

    def parts() -> Iterator[Part]:
        rows = [
            (
                *(each.outcome.value, format_change(each.change.estimate_ratio), each.reason),
                *(format_ns(each.old_ns), format_ns(each.new_ns), each.name),
            )
            for each in changes
        ]
        yield Sheet(("<verdict", ">change", "<interval", ">old", ">new", "test"), rows)
        told = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
        yield f"\n{format_count(len(changes), 'test')}, margin {DEFAULT_MARGIN_RATIO * 100:g} %: {told}"
        if n_alone:
            yield f"{format_count(n_alone, 'test')} of one file alone left out"
        if not decides:
            todo = "run OLD, NEW, OLD, NEW ... and append to the files"
            yield f"nothing is decided: {todo}; {n_needed} runs of each at least"

    plain = {
        "margin_ratio": DEFAULT_MARGIN_RATIO,
        "tests": [_plain_test(each) for each in changes],
        "n_of_one_file_alone": n_alone,
    }
    give(Answer(parts=parts, plain=lambda: plain), options)
    return 10 if not decides else 1 if counts[Outcome.REGRESSED] else 0


def _plain_test(change: FileChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "outcome": change.outcome.value,
        "old_ns": change.old_ns,
        "new_ns": change.new_ns,
        "change_ratio": change.change.estimate_ratio,
        "lower_ratio": change.change.lower_ratio,
        "upper_ratio": change.change.upper_ratio,
        "reason": change.reason,
    }
