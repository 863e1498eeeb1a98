"""Commands that are killed, whose power is cut and whose disk is full, at some of the moments of tools/kills.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "kills.py"

#: Those that start a database or other programs take longer.
SLOW = ("baseline record", "engines import", "weights", "history add", "history compact", "nightly", "bundle")


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("command", "n_moments"),
    [
        ("baseline approve", 4),
        ("engines keep", 4),
        *(pytest.param(command, 12, marks=pytest.mark.long) for command in SLOW),
    ],
)
def test_nothing_is_lost_at_some_moments(command: str, n_moments: int, tmp_path: Path) -> None:
    """A reader finds what was there before or after, and repeating the command completes it and leaves nothing."""
    words = [sys.executable, str(TOOL), "--command", command, "--kills", str(n_moments), "--json"]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=900)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [(row["kind"], row["wrong"]) for row in rows]
    assert wrong == [(kind, {}) for kind in ("kill", "cut", "full", "read-only")], done.stderr
    assert all(row["n_moments"] for row in rows)
    assert done.returncode == 0


def test_what_is_not_whole_is_found(tmp_path: Path) -> None:
    """A command that writes in place, and syncs nothing, fails each of the trials: the tool can say no."""
    program = tmp_path / "run.py"
    program.write_text(
        f"""
import sys
sys.path.insert(0, {str(TOOL.parent)!r})
from pathlib import Path
import kill_commands

def write():
    with open("both", "w") as out:
        out.write("new" * 100)
    return 0

kill_commands.COMMANDS["bad"] = kill_commands.Command(
    prepare=lambda: Path("both").write_text("old") and None,
    run=write,
    see=lambda: {{"both": Path("both").read_text()}},
)
import runpy
sys.argv[0] = {str(TOOL)!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""
    )
    folder = tmp_path / "bench"
    folder.mkdir()
    shim = folder / "kills_shim.so"
    source = TOOL.with_name("kills_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-U_FORTIFY_SOURCE", str(source), "-o", str(shim)], check=True)
    words = [sys.executable, str(program), "--command", "bad", "--kills", "4", "--json", "--bench", str(folder)]
    done = subprocess.run(words, env={"LD_PRELOAD": str(shim)}, capture_output=True, text=True, timeout=120)
    wrong = {row["kind"]: row["wrong"] for row in map(json.loads, done.stdout.splitlines())}
    assert all(wrong.values()), (wrong, done.stderr)
    assert done.returncode == 1
