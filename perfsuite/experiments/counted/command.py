"""``perfsuite counts`` (measure): count a model's work, exactly, against what was committed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_json, add_quiet
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.counted.counting_run import count_workload
from perfsuite.records.counts import CountedWork, counts_path, read_counts, write_counts
from perfsuite.report.visible import terminal_text
from perfsuite.verdict.counted import CountChange, count_changes
from perfsuite.verdict.expected_counts import ExpectedCount, expected_counts
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_ABOUT = """
Instructions, data read and written, branches and allocations, by phase and operator: each run counts the same. A pinned
build runs under Valgrind on one thread. Counts do not see stalls, caches, contention or clocks.
"""

_EXAMPLES = {
    "perfsuite counts --llama ../llama.cpp": "does your checkout do more work?",
    "perfsuite counts --record": "keep what is counted now, to commit it",
}


_MODEL = "smollm2-135m-l4-q8_0"


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "counts",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="with --record, the baseline",
        exits={1: "something does more than before", 10: "there is nothing to judge by"},
        see=("perfsuite compare",),
    )
    text = "checkout of llama.cpp, or release of llama-cpp-python (default: the one that perfsuite requires)"
    parser.add_argument("--llama", metavar="FOLDER|VERSION", help=text)
    parser.add_argument("--model", default=_MODEL, metavar="NAME|FILE", help=f"default {_MODEL}")
    parser.add_argument("--prompt", type=int, default=16, metavar="N", help="prompt tokens (default 16)")
    parser.add_argument("--decode", type=int, default=4, metavar="N", help="tokens to decode (default 4)")
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
    weights = resolve(options.model, cache_dir=user_cache() / "models")
    workload = llama_workload(weights, find_scenario(f"p{options.prompt}-g{options.decode}"))
    with progress("counts", options) as tell:
        now = count_workload(workload, options.llama, user_cache(), tell.step)
    path = counts_path(options.baseline_dir, now.prefix)
    expected = expected_counts(now, workload)
    if options.record:
        write_counts(path, now)
        give(_answer(now, expected, path, (), "recorded"), options)
        return 0
    if not path.exists():
        give(_answer(now, expected, path, (), "new"), options)
        return 10
    changes = [each for each in count_changes(read_counts(path), now).values() if each.differs]
    is_worse = any(each.is_more for each in changes)
    give(_answer(now, expected, path, changes, "regressed" if is_worse else "changed" if changes else "same"), options)
    return int(is_worse)


_OUTCOMES = {
    "recorded": "recorded in {path}; commit it",
    "new": "no counts to judge by in {path}; keep these with --record",
    "regressed": "more work than in {path}",
    "changed": "less work than in {path}; keep the new counts with --record",
    "same": "the same work as in {path}",
}


def _answer(
    now: CountedWork,
    expected: Mapping[str, ExpectedCount],
    path: Path,
    changes: Sequence[CountChange],
    outcome: str,
) -> Answer:
    findings = [each for each in expected.values() if each.is_finding]

    def parts() -> Iterator[Part]:
        if findings:
            yield Sheet(
                ("case", ">of expected", "more than its formula says"),
                [(each.case_id, f"{each.ratio:.0%}", each.told) for each in findings],
            )
        rows = [
            (each.case_id, each.before, each.now, None if each.ratio is None else f"{each.ratio:+.3%}")
            for each in changes
        ]
        if rows:
            yield Sheet(("case", ">before", ">now", ">change"), rows)
        yield f"{len(now.counts)} counts of {now.prefix}, {terminal_text(now.llama)}; {len(changes)} differ"
        if expected:
            yield f"{len(expected)} counts compared with formulas; {len(findings)} show more work"
        yield _OUTCOMES[outcome].format(path=terminal_text(str(path)))

    return Answer(
        parts=parts,
        plain=lambda: {
            "outcome": outcome,
            "changes": [{**asdict(each), "ratio": each.ratio} for each in changes],
            "expected": [
                {**asdict(each), "ratio": each.ratio, "is_finding": each.is_finding} for each in expected.values()
            ],
            "counted": asdict(now),
        },
    )
