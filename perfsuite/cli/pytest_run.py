"""A run of pytest that a subcommand starts: what pytest says is its answer, or with ``--json`` the run's run.json."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TextIO

from perfsuite.cli.kept_folders import kept_folder, user_cache
from perfsuite.device.end_requests import requests_unheard
from perfsuite.errors import PerfsuiteError, lack_of
from perfsuite.option_table import own_name
from perfsuite.records.own_files import own_python
from perfsuite.records.run_file import RUN_NAME

_FOLDER = "--perf-dir"
#: How long a program that a terminal has asked to end may take before it is asked once more.
_ASKED_S = 1.0

#: How pytest ends where no test is chosen.
_NO_CASE = 5

_ERROR = re.compile(r"^(?:ERROR: (?!usage: )|perfsuite: error: |.*\bpytest: error: )(.*)", re.MULTILINE)


def values_of(words: Sequence[str], name: str) -> Iterator[str]:
    """Yield the values that words give an option, in one word or two, by either of its names."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        option, has_value, value = own_name(word).partition("=")
        if option == name:
            yield value if has_value else following


def ask_pytest(
    words: Sequence[str], environment: Mapping[str, str] | None = None, *, typed: Mapping[str, str] | None = None
) -> None:
    """Run pytest for what it leaves, not for its answer; errors have what was `typed` for what pytest was given.

    Raises PerfsuiteError: it refuses something.
    """
    line = own_python("-m", "pytest", *words, "-p", "no:cacheprovider", "-q")
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment)
    if done.returncode not in (0, _NO_CASE):
        told = _ERROR.findall(f"{done.stdout}\n{done.stderr}")
        said = told[-1] if told else f"pytest ended with {done.returncode}"
        for given, as_typed in (typed or {}).items():
            said = said.replace(given, as_typed)
        raise PerfsuiteError(said)


def refuse_mistakes(
    words: Sequence[str], environment: Mapping[str, str] | None = None, *, typed: Mapping[str, str] | None = None
) -> None:
    """Let pytest read the words of a run before anything is built for it; raises as `ask_pytest`."""
    with tempfile.TemporaryDirectory(prefix="perfsuite-options-") as folder:
        ask_pytest([f"{_FOLDER}={folder}", *words, "--collect-only"], environment, typed=typed)


def run_pytest(
    words: Sequence[str], options: argparse.Namespace, *, environment: Mapping[str, str] | None = None
) -> tuple[int, Path | None]:
    """Run pytest with the words and those that stand behind ``--``; return its exit code and the run.json that it left.

    What an earlier run left in the folder is none of it. With ``--json`` what pytest says goes to standard error, and
    standard output has run.json alone, or nothing where the run left none.
    """
    line = own_python("-m", "pytest", *words, *options.pytest_options)
    now = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    folder = Path([str(kept_folder("runs") / now), *values_of(line, _FOLDER)][-1])
    path = folder / RUN_NAME
    before = path.stat() if path.is_file() else None
    status = _status([*line, f"{_FOLDER}={folder}"], environment, sys.stderr if options.json else None)
    if not path.is_file() or (before is not None and os.path.samestat(before, path.stat())):
        return status, None
    if options.json:
        print(path.read_text(encoding="utf-8"), end="")
    return status, path


def _status(line: Sequence[str], environment: Mapping[str, str] | None, output: TextIO | None) -> int:
    """Return a program's exit code; where this one is asked to end, that one is too, and keeps what it has first."""
    with subprocess.Popen(line, env=environment, stdout=output) as process:
        try:
            return process.wait()
        except (KeyboardInterrupt, SystemExit) as request:
            with requests_unheard():
                if isinstance(request, KeyboardInterrupt):  # a terminal has asked both
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_ASKED_S)
                process.send_signal(signal.SIGINT)
                process.wait()
            raise


def apart_words() -> Iterator[str]:
    """Yield the words by which pytest takes nothing from the folder in which it runs: what is judged may have laid it.

    That is configuration, conftest.py, plugins, ``devices/`` and ``baselines/``. What the run leaves goes where it
    always does.
    """
    root = user_cache() / "compare"
    root.mkdir(parents=True, exist_ok=True)
    yield from ("--config-file=/dev/null", f"--rootdir={root}", "--noconftest", "-pno:cacheprovider")
    if lack_of("duckdb") is None:
        yield f"--perf-history={kept_folder('history')}"
