"""Tests of the fuzzing itself: it notices what a reader must not do, and knows every reader."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.readers import READERS

ROOT = Path(__file__).resolve().parents[1]

#: Readers of files that the suite does not take from elsewhere, or that others in the table call, and why.
OTHERWISE = {
    "read_some": "files of /sys",
    "read_line": "files of /sys",
    "read_number": "files of /sys",
    "read_name": "files of /sys",
    "read_temperatures": "files of /sys",
    "read_battery": "files of /sys",
    "read_state": "`night-state` calls it",
    "read_digest": "hashes, and reads nothing",
    "read_record": "`worker-record` reads what it reads",
    "read_request": "compares a hash, and reads nothing",
    "read_mark": "the suite's own mark on a device",
    "read_header": "`gguf` calls it",
    "read_bpf_log": "`ebpf-log` calls it",
    "read_lines": "`prompts` calls it",
    "read_toml": "`device`, `study` and `night-plan` call it",
    "read_json": "most call it",
    "read_config": "`config` calls it",
    "read_plain_run": "`run` calls it",
    "read_page_run": "reads a run and its observation",
    "read_alone_run": "`run-phases` calls it",
    "read_scores": "`lm-eval` reads what it reads, of each run of a plan",
}

#: What readers do that none may, and what is said of it.
BAD_READERS = {
    "1 / 0": "ZeroDivisionError",
    "bytearray(600 << 20)": "MemoryError",
    "any(_ for _ in iter(int, 1))": "takes more than 2 s",
    "__import__('os').abort()": "ended with -6",
    "__import__('os')._exit(3)": "ended with 3",
    "path.read_text(), write=lambda value, path: path.write_text(value + 'y')": "BrokenError",
}

_SCRIPT = """
from tests.fuzz import executions, readers
text = readers.Form.TEXT
executions.READERS = {%s}
for name in executions.READERS:
    found = executions.replayed(name, b"x")
    print(found.what if found else "nothing")
"""


def _answer(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.long
def test_what_no_reader_may_do_is_found() -> None:
    """An error that is none of ours, too much memory or time, the end of the process, and a value that is not kept."""
    made = (f"{does!r}: readers.Reader(form=text, read=lambda path: {does})" for does in BAD_READERS)
    lines = _answer("-c", _SCRIPT % ", ".join(made)).stdout.splitlines()
    assert [line.split(" in ")[0] for line in lines] == list(BAD_READERS.values())


@pytest.mark.long
def test_no_reader_does_what_none_may() -> None:
    """Each reads its seeds, what the fuzzing has found, and some changed files that are the same each time."""
    done = _answer("-m", "tests.fuzz", "--executions=30", "--seed=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} == set(READERS)


def test_every_reader_of_the_suite_is_fuzzed() -> None:
    """Whatever reads a file by its path is in the table, or in a list that says why not."""
    named = set(re.findall(r"read_\w+", (Path(__file__).parent / "fuzz" / "readers.py").read_text("utf-8")))
    found = set()
    for path in (ROOT / "perfsuite").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("read_"):
                takes = {ast.unparse(each.annotation) for each in node.args.args if each.annotation}
                found |= {node.name} if any("Path" in each for each in takes) else set()
    assert found - named - set(OTHERWISE) == set()
