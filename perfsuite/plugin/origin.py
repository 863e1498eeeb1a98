"""Where a run comes from: its id, the arguments that make it again, the engine that it names, its commit."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from perfsuite.measure.engine import Engine
from perfsuite.option_table import OPTIONS
from perfsuite.plugin.registration import usable_name, value_of
from perfsuite.records.run_origin import Commit, RunOrigin

#: Longest that git may take for one answer.
_LIMIT_S = 10.0

_SHA = re.compile(r"[0-9a-f]{7,40}")


def named_commit(text: str) -> Commit:
    """Return the commit that ``--perf-commit`` names.

    Raises pytest.UsageError: it is no commit in hexadecimal.
    """
    sha = text.strip().lower()
    if not _SHA.fullmatch(sha):
        raise pytest.UsageError(f"--perf-commit={text}: expected 7 to 40 hexadecimal digits, as 'git rev-parse HEAD'")
    return Commit(sha=sha)


def commit_of(folder: Path) -> Commit | None:
    """Return what is checked out in a folder; None without git, outside of a working tree, or before any commit.

    A tree whose state git cannot tell in time counts as dirty.
    """
    sha = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not sha or not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD")
    return Commit(sha=sha, is_dirty=changed != "", branch=branch or None)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git says; None where it fails. Nothing is written: other processes of git may be at work."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


#: Options that say where a run is written, or how a board is waited for, and not what is measured. ``--farm`` is not
#: among them: the board was given back, and may be another's by now, who would not hear of a run at its address.
_WHERE = frozenset(
    {"--perf-dir", "--perf-report", "--perf-history", "--perf-wait", "--farm-wait", "--farm-break", "--farm-avoid"}
)


def new_run_id() -> str:
    """Return an id unlike that of any other run: UTC time, process id, and a few random digits."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{os.getpid()}-{secrets.token_hex(3)}"


def run_origin(config: pytest.Config, run_id: str, engine: Engine | None) -> RunOrigin:
    """Describe the run that a configuration asks for; on a board at the end of a link the engine is not known here.

    Raises pytest.UsageError: ``--perf-commit`` names none.
    """
    named: str | None = config.option.perf_commit
    return RunOrigin(
        run_id=run_id,
        arguments=tuple(rerun_arguments(config)),
        selection=tuple(chosen_cases(config)),
        environment={} if engine is None or engine.is_packaged else {"LLAMA_CPP_LIB_PATH": str(engine.library_dir)},
        commit=commit_of(config.rootpath) if named is None else named_commit(named),
    )


def rerun_arguments(config: pytest.Config) -> Iterator[str]:
    """Yield the arguments that make pytest measure the same again, from the folder in which it was invoked.

    They are what the options came to, whether the command line, ``addopts`` or a variable named them. What chooses
    among cases, says where to write, records a baseline or is about the terminal is left out.
    """
    if config.option.pyargs:
        yield "--pyargs"
    yield from _own_arguments(config)
    yield from (f"--override-ini={each}" for each in config.option.override_ini or () if each.startswith("perf_"))
    yield from _plugins(config.invocation_params.args)
    if config.option.inifilename:
        yield f"--config-file={config.option.inifilename}"
    if config.option.rootdir:
        yield f"--rootdir={config.option.rootdir}"
    if config.args_source is pytest.Config.ArgsSource.ARGS:  # as a whole, without the choice of a test in them
        yield from dict.fromkeys(each.split("::")[0] for each in config.args)


def chosen_cases(config: pytest.Config) -> Iterator[str]:
    """Yield the words that chose among the cases; of a file that was named as a whole too, no test by itself."""
    for name, expression in (("-k", config.option.keyword), ("-m", config.option.markexpr)):
        if expression:
            yield from (name, expression)
    yield from (f"--deselect={each}" for each in config.option.deselect or ())
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        yield from (each for each in dict.fromkeys(config.args) if each.split("::")[0] not in (each, *config.args))


def _own_arguments(config: pytest.Config) -> Iterator[str]:
    for name, settings in OPTIONS.items():
        value = value_of(config.option, name)
        is_unset = value is None or value is False or (name, value) == ("--baseline", "record")
        if name in _WHERE or value == settings.get("default") or is_unset:
            continue
        usable = usable_name(config, name)
        yield usable if value is True else f"{usable}={value}"
    if config.option.perf_shapes is not None:
        yield f"--hypothesis-seed={config.option.hypothesis_seed}"


def _plugins(arguments: Sequence[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the plugins that the command line names; those of ``addopts`` are loaded again by themselves."""
    words = [os.fspath(each) for each in arguments]
    pairs = zip(words, [*words[1:], ""], strict=True)
    yield from dict.fromkeys(f"-p{word[2:] or following}" for word, following in pairs if word[:2] == "-p")
