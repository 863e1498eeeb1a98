"""A run of pytest that a subcommand starts: what pytest says is its answer, or with ``--json`` the run's run.json."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

from perfsuite.cli.kept_folders import kept_folder
from perfsuite.records.run_json import RUN_NAME

_FOLDER = "--perf-dir="


def run_pytest(
    words: Sequence[str], options: argparse.Namespace, *, environment: Mapping[str, str] | None = None
) -> int:
    """Run pytest with the words and those that stand behind ``--``; return its exit code.

    With ``--json`` what pytest says goes to standard error, and standard output has run.json alone, or nothing where
    the run left none; what an earlier run left in the folder is none of it.
    """
    line = [sys.executable, "-m", "pytest", *words, *options.pytest_options]
    if not options.json:
        return subprocess.run(line, env=environment, check=False).returncode
    pairs = (f"{first}={second}" for first, second in pairwise(line))
    named = [word.removeprefix(_FOLDER) for word in (*pairs, *line) if word.startswith(_FOLDER)]
    now = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{os.getpid()}"
    folder = Path(named[-1]) if named else kept_folder("runs") / now
    path = folder / RUN_NAME
    before = path.stat() if path.is_file() else None
    done = subprocess.run([*line, f"{_FOLDER}{folder}"], env=environment, stdout=sys.stderr, check=False)
    if path.is_file() and (before is None or not os.path.samestat(before, path.stat())):
        print(path.read_text(encoding="utf-8"), end="")
    return done.returncode
