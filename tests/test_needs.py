"""The tool that installs what the tests need, where there is nothing and nobody who may install it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a folder of commands for somebody who is not root, and whom sudo asks for a password."""
    for name in ("bash", "dirname", "find", "mktemp", "rm", "sed"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    for name, script in (("id", "echo 1000"), ("sudo", "exit 1"), ("apt-get", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def needs(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool with these commands alone."""
    command = [shutil.which("bash") or "bash", str(ROOT / "tools" / "needs.sh"), *arguments]
    return subprocess.run(command, env={"PATH": str(path)}, capture_output=True, text=True, check=False, timeout=60)


def test_what_cannot_be_had_is_one_line_for_each_part(bare: Path) -> None:
    """Each names the packages and what is lost; nothing fails."""
    done = needs(bare, "--system", "ebpf", "browser")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("needs: without clang ")
    assert lines[0].endswith("(Debian's names) the eBPF recorder is not built")
    assert lines[1].startswith("needs: without chromium")


def test_a_part_that_nobody_knows_is_named(bare: Path) -> None:
    """A misspelt part is an error."""
    done = needs(bare, "ebfp")
    assert (done.returncode, done.stderr) == (2, "needs: no part called 'ebfp'\n")
