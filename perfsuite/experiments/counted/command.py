"""``perfsuite counts`` (measure): count a model's work, exactly, against what was committed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.counted.counting_run import CountRequest, count
from perfsuite.records.counts import METRICS, CountedWork, read_counts, write_counts
from perfsuite.report.visible import terminal_text
from perfsuite.verdict.counted import CountChange, count_changes

_ABOUT = """
Instructions, data read and written, branches and allocations, by phase and operator: each run counts the same. A pinned
build runs under Valgrind on one thread. Counts do not see stalls, caches, contention or clocks.
"""

_EXAMPLES = {
    "perfsuite counts --llama ../llama.cpp": "does your checkout do more work?",
    "perfsuite counts --record": "keep what is counted now, to commit it",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    usual = CountRequest()
    parser = add_command(
        commands,
        "counts",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="with --record, the baseline",
        exits={1: "something does more than before", 10: "there is nothing to judge by"},
        see=("perfsuite compare",),
    )
    text = "checkout of llama.cpp, or release of llama-cpp-python (default: the installed one)"
    parser.add_argument("--llama", metavar="FOLDER|VERSION", help=text)
    parser.add_argument("--model", default=usual.model, metavar="NAME|FILE", help=f"default {usual.model}")
    parser.add_argument("--prompt", type=int, default=usual.n_prompt, metavar="N", help="prompt tokens (default 16)")
    parser.add_argument("--decode", type=int, default=usual.n_gen, metavar="N", help="tokens to decode (default 4)")
    text = "folder of the baselines (default baselines)"
    parser.add_argument("--baseline-dir", type=Path, default=Path("baselines"), metavar="DIR", help=text)
    parser.add_argument("--record", action="store_true", help="write what is counted now, and judge nothing")
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    for name in ("prompt", "decode"):
        if getattr(options, name) < 1:
            raise PerfsuiteError(f"--{name}={getattr(options, name)}: expected 1 or more")
    request = CountRequest(model=options.model, n_prompt=options.prompt, n_gen=options.decode, llama=options.llama)
    with progress("counts", options) as tell:
        now = count(request, user_cache(), tell.step)
    path = options.baseline_dir / "counted" / f"{now.name}.json"
    if options.record:
        write_counts(path, now)
        give(_answer(now, path, (), "recorded"), options)
        return 0
    if not path.exists():
        give(_answer(now, path, (), "new"), options)
        return 10
    changes = count_changes(read_counts(path), now)
    is_worse = any(each.is_more for each in changes)
    give(_answer(now, path, changes, "regressed" if is_worse else "changed" if changes else "same"), options)
    return int(is_worse)


_OUTCOMES = {
    "recorded": "recorded in {path}; commit it",
    "new": "no counts to judge by in {path}; keep these with --record",
    "regressed": "more work than in {path}",
    "changed": "less work than in {path}; keep the new counts with --record",
    "same": "the same work as in {path}",
}


def _answer(now: CountedWork, path: Path, changes: Sequence[CountChange], outcome: str) -> Answer:
    def parts() -> Iterator[Part]:
        rows = [
            (each.case_id, each.metric, each.before, each.now, None if each.ratio is None else f"{each.ratio:+.3%}")
            for each in changes
        ]
        if rows:
            yield Sheet(("case", "counted", ">before", ">now", ">change"), rows)
        n_cases = len(now.rows) * len(METRICS)
        yield f"{n_cases} counts of {now.name}, {terminal_text(now.llama)}; {len(changes)} differ"
        yield _OUTCOMES[outcome].format(path=terminal_text(str(path)))

    return Answer(
        parts=parts,
        plain=lambda: {
            "outcome": outcome,
            "changes": [{**asdict(each), "ratio": each.ratio} for each in changes],
            "counted": asdict(now),
        },
    )
