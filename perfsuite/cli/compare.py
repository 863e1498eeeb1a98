"""``perfsuite compare`` (measure): compare two builds of llama.cpp in pairs, compiled first where they are not yet."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_quiet, take_behind_dashes
from perfsuite.errors import EngineError

_ABOUT = """
OLD and NEW are each a folder (a checkout, a build, an install prefix, or a folder of libraries), a release of
llama-cpp-python, or with --source a revision of that checkout: a branch, a tag, a commit. What is not built yet is
compiled for this machine and kept in the cache, by content; --build says how, where your own options matter. A revision
is built from a copy of its files, so that the checkout stays as it is.

Then both take turns, as 'pytest --device=host --against=OLD' lets them, with the same cases, verdicts and exit codes.
Options of pytest may follow behind '--'.
"""

_EXAMPLES = {
    "perfsuite compare master my-branch --source ../llama.cpp": "is my branch slower?",
    "perfsuite compare ../llama.cpp/build-old ../llama.cpp/build": "two folders that were built",
    "perfsuite compare 0.3.35 0.3.36 -- --perf-budget=3m": "two releases, with more time",
    "perfsuite compare HEAD~1 HEAD --source . --build 'cmake -B build && cmake --build build -j'": "your own build",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "compare",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="builds into the user's cache, and what a run of pytest does: .perfsuite/runs/",
        exits={1: "a case regressed, or could not be measured", 10: "nothing could be judged"},
        see=("docs/how-to/compare-two-builds.md",),
    )
    parser.add_argument("old", metavar="OLD", help="the build that is compared with")
    parser.add_argument("new", metavar="NEW", help="the build that is judged")
    parser.add_argument("--source", type=Path, metavar="DIR", help="the checkout whose revisions OLD and NEW are")
    text = "builds a revision, run by sh in a copy of it; libraries must be shared ones"
    parser.add_argument("--build", metavar="COMMAND", help=text)
    parser.add_argument("pytest_options", nargs="*", metavar="OPTION", help="behind '--': further options of pytest")
    take_behind_dashes(parser, "pytest_options")
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.cli.progress import progress
    from perfsuite.measure.bundle.named_builds import Builder
    from perfsuite.measure.launch import ENGINE_NAME, program_environment

    if options.build is not None and options.source is None:
        raise EngineError("--build: says how revisions are built; name their checkout with --source")
    with progress("compare", options) as tell:
        builder = Builder(cache_dir=user_cache(), tell=tell.step, source=options.source, command=options.build)
        old, new = builder.engine(options.old), builder.engine(options.new)
    print(f"old: {options.old}, build {old.build_id}\nnew: {options.new}, build {new.build_id}", flush=True)
    command = [sys.executable, "-m", "pytest", "--device=host", f"--against={old.library_dir}"]
    environment = program_environment({ENGINE_NAME: str(new.library_dir)})
    return subprocess.run([*command, *options.pytest_options], env=environment, check=False).returncode
