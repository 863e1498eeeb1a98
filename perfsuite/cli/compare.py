"""``perfsuite compare``."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_json, add_pytest_options, add_quiet
from perfsuite.cli.compare_files import compare_files
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.progress import progress, remarks
from perfsuite.cli.pytest_run import apart_words, refuse_mistakes, run_pytest, values_of
from perfsuite.device.address import asked_reach
from perfsuite.device.farm.request import length_s
from perfsuite.device.machine import NO_CONDITIONS
from perfsuite.device.profile import find_profile
from perfsuite.device.profile.search import user_folder
from perfsuite.device.reach import Reach
from perfsuite.errors import EngineError, PerfsuiteError
from perfsuite.measure.board.opening import choose_board, desk_claim
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.engine import Engine
from perfsuite.measure.environment import ENGINE_NAME, RUN_ID_NAME, program_environment
from perfsuite.option_table import command_settings, own_name
from perfsuite.records.run_file import read_plain_run
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_count

#: Variables by which pytest would take more than the command says.
_OF_PYTEST = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")

#: A device that is not asked, so that pytest reads options without the builds.
_NOT_ASKED = "--perf-address=ssh:none"

#: What runs elsewhere.
_ELSEWHERE = ("--perf-farm", "--perf-plan", "--perf-ingest")

#: What pytest's options are called besides, as llama-bench has them.
_SUBJECT = {
    "model": "-m",
    "n-prompt": "-p",
    "n-gen": "-n",
    "n-depth": "-d",
    "ubatch-size": "-ub",
    "threads": "-t",
    "flash-attn": "-fa",
    "cache-type-k": "-ctk",
    "cache-type-v": "-ctv",
    **dict.fromkeys(("lora-rank", "parallel", "draft", "mmproj")),
}

_FLASH = {"1": "on", "on": "on", "0": "off", "off": "off"}


def _flash(text: str) -> str:
    if text not in _FLASH:
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor 1")
    return _FLASH[text]


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "compare",
        about="""
        OLD and NEW are each a folder (checkout, build, install prefix, libraries), a release or wheel of
        llama-cpp-python, a kept build ('perfsuite engines list'), or with --source a revision. What is not built yet is
        compiled in a copy and kept.

        OLD and NEW may also be two files of llama-bench (-o json, jsonl, csv or sql) or test-backend-ops (--output
        sql). Then nothing is measured.
        """,
        examples={
            "perfsuite compare master my-branch --source ../llama.cpp": "is my branch slower?",
            "perfsuite compare 0.3.35 0.3.36 -m model.gguf -p 512 -n 128 -- --perf-budget=3m": (
                "two releases, with more time"
            ),
        },
        writes="builds into the cache, and the files of a run",
        exits={
            1: "a case regressed, or could not be measured",
            10: "nothing could be judged",
            11: "a case looks slower, not proven, or there were fewer than five pairs",
        },
        see=("docs/how-to/compare-two-builds.md",),
        options=[
            ("old OLD", "build to compare with"),
            ("new NEW", "build to judge"),
            ("--source DIR", "checkout of the revisions", Path),
            ("--build COMMAND", "shell command that builds a revision, with shared libraries"),
            ("--with-changes", "build NEW with the changes of the checkout that no commit holds"),
        ],
    )
    subject = parser.add_argument_group("workload, with the options of llama-bench")
    for name, short in _SUBJECT.items():
        settings = command_settings(name)
        if name == "flash-attn":
            settings = {"type": _flash, "metavar": "0|1", "help": settings["help"]}
        subject.add_argument(*filter(None, (short, f"--{name}")), **settings)
    add_pytest_options(parser)
    add_json(parser, text="print run.json, or the tests of two files; pytest's own words go to standard error")
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _asked(options: argparse.Namespace) -> Iterator[str]:
    given = ((name, getattr(options, name.replace("-", "_"))) for name in _SUBJECT)
    yield from (f"--{name}={value}" for name, value in given if value is not None)


def _run(options: argparse.Namespace) -> int:
    if _is_of_files(options):
        return compare_files(options)
    if options.build is not None and options.source is None:
        raise EngineError("--build: says how revisions are built; name their checkout with --source")
    _refuse_other_device(options.pytest_options)
    words, asked = [*apart_words(), "--perf-device=host"], list(map(own_name, _asked(options)))
    with progress("compare", options) as tell:
        builder = Builder(cache_dir=user_cache(), tell=tell.step, source=options.source, command=options.build)
        builder.check(options.old, options.new)
        _tell_changes(options, builder)
        unbuilt = (*words, f"--perf-against={options.old}", *asked, *options.pytest_options, _NOT_ASKED)
        refuse_mistakes(unbuilt, program_environment({}, without=_OF_PYTEST))
    with _had_alone(options) as run_id:
        with progress("compare", options) as tell:
            builder = replace(builder, tell=tell.step)
            old, new = builder.engine(options.old), builder.engine(options.new, with_changes=options.with_changes)
        output = sys.stderr if options.json else sys.stdout
        for side, named, engine in (("old", options.old, old), ("new", options.new, new)):
            print(f"{side}: {named}, build {engine.build_id}{builder.age(engine)}", flush=True, file=output)
        words.append(f"--perf-against={old.library_dir}")
        if (commit := builder.commit(options.new)) is not None:
            words.append(f"--perf-commit={commit}")
        own = {ENGINE_NAME: str(new.library_dir), RUN_ID_NAME: run_id}
        environment = program_environment(own, without=_OF_PYTEST)
        status, run = run_pytest([*words, *asked], options, environment=environment)
    if (status == 0 or status >= 10) and not (run is not None and _is_of(run, old, new)):
        raise PerfsuiteError("nothing was compared: pytest left no whole run.json of both builds")
    return status


def _refuse_other_device(words: Sequence[str]) -> None:
    """Refuse a device that is elsewhere: the builds are made for this machine, and lie on it."""
    elsewhere = [name for name in _ELSEWHERE for _ in values_of(words, name)]
    for name in values_of(words, "--perf-device"):
        elsewhere += [f"--device={name}"] * (find_profile(name, folders=(user_folder(),)).reach.way != "local")
    for text in values_of(words, "--perf-address"):
        elsewhere += [f"--perf-address={text}"] * (asked_reach("--perf-address", text).way != "local")
    if elsewhere:
        todo = "leave it out; 'pytest --device=NAME --against=FOLDER' compares with a build that lies on a board"
        raise PerfsuiteError(f"{elsewhere[0]}: compare builds and measures on this machine; {todo}")


@contextmanager
def _had_alone(options: argparse.Namespace) -> Iterator[str]:
    """Have this machine from before anything is compiled, and yield the run's id, by which pytest shares it.

    Raises LockedError: somebody else has it, and ``--perf-wait`` is over.
    """
    wait_s = [length_s(text) or 0.0 for text in values_of(options.pytest_options, "--perf-wait")]
    purpose, run_id = "perfsuite compare", f"compare-{uuid.uuid4().hex}"
    reach, tell = Reach(way="local"), remarks("compare", options).remark
    claim = desk_claim("host", reach, purpose=purpose, run_id=run_id, wait_s=wait_s[-1] if wait_s else 0.0)
    with closing(choose_board(reach, NO_CONDITIONS, claim, cache_dir=user_cache(), tell=tell)) as board:
        board.open()
        yield claim.run_id


def _tell_changes(options: argparse.Namespace, builder: Builder) -> None:
    """Say which changes are left out; refuse to take some where there are none."""
    for named in dict.fromkeys((options.old, options.new)):
        n_changes = builder.n_changes(named)
        if options.with_changes and named == options.new and not n_changes:
            todo = "name what is checked out in the folder of --source"
            raise EngineError(f"--with-changes: {named} has no changes beside its commit; {todo}")
        if n_changes and not (options.with_changes and named == options.new):
            files = format_count(n_changes, "changed file")
            text = (
                f"{named}: without {files} of {options.source} that no commit holds; --with-changes takes them into NEW"
            )
            print(f"compare: {terminal_text(text)}", file=sys.stderr, flush=True)


def _is_of(path: Path, old: Engine, new: Engine) -> bool:
    """Whether a run was finished, and its sides are these builds."""
    plain = read_plain_run(path)
    against = [word for word in map(own_name, plain.get("arguments", ())) if word.startswith("--perf-against=")]
    named = plain.get("environment", {}).get(ENGINE_NAME, str(new.library_dir))
    is_whole = not plain.get("interrupted", True)
    return is_whole and against == [f"--perf-against={old.library_dir}"] and named == str(new.library_dir)


def _is_of_files(options: argparse.Namespace) -> bool:
    """Say whether both sides are files of what was measured; raises PerfsuiteError where one alone is."""
    sides = [Path(each) for each in (options.old, options.new)]
    are_files = [each.is_file() and each.suffix != ".whl" for each in sides]
    if not any(are_files):
        return False
    if not all(are_files):
        file, other = sides if are_files[0] else reversed(sides)
        raise PerfsuiteError(f"{other}: is no file, and {file} is one; expected two builds, or two files")
    asked = [*_asked(options), *options.pytest_options]
    asked += [f"--{name}" for name in ("source", "build", "with-changes") if getattr(options, name.replace("-", "_"))]
    if asked:
        raise PerfsuiteError(f"{asked[0]}: says how builds are measured, and {options.old} is a file of what was")
    return True
