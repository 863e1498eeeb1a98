"""A checkout of its own in which the commands of a page are run, one after the other, in one shell's state."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .docs_pages import ROOT

#: What a reader has after 'git clone' and 'make env', but for the package itself, which .venv/ knows.
_PARTS = ("Makefile", "README.md", "pyproject.toml", "conftest.py", "baselines", "docs", "tools", ".ci")

#: What a machine may need to reach package registries, and a reader's shell therefore has.
_NETWORK = ("PIP_", "SSL_CERT_", "REQUESTS_CA_", "CURL_CA_", "http_proxy", "https_proxy", "no_proxy")

#: Sets what the command before left, runs the next one, and keeps what it leaves; variables count as exported.
_SCRIPT = """
set -a
[ ! -e "$DOCS_STATE/variables" ] || . "$DOCS_STATE/variables"
cd "$(cat "$DOCS_STATE/folder")" || exit
(exit "$(cat "$DOCS_STATE/status")")
eval "$DOCS_COMMAND"
status=$?
unset DOCS_COMMAND
declare -px >"$DOCS_STATE/variables"
pwd >"$DOCS_STATE/folder"
echo "$status" >"$DOCS_STATE/status"
exit "$status"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    status: int
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    root: Path
    home: Path
    state: Path

    def run(self, text: str, limit_s: float) -> Ran:
        """Run a command line where the one before left off; past the limit it is ended, and the status is 124."""
        process = subprocess.Popen(
            ["bash", "-c", _SCRIPT],
            env=self._environment(text),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ran(status=124, output=f"{process.communicate()[0]}\n(ended after {limit_s:g} s)")
        return Ran(status=process.returncode, output=output)

    def write(self, name: str, text: str) -> None:
        path = Path((self.state / "folder").read_text().strip()) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _environment(self, text: str) -> dict[str, str]:
        network = {name: value for name, value in os.environ.items() if name.startswith(_NETWORK)}
        return network | {
            "PATH": f"{self.root / '.venv' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            "PERFSUITE_LOCK_DIR": str(self.state),  # a page contends with no run on this machine
            "DOCS_STATE": str(self.state),
            "DOCS_COMMAND": text,
        }


def make_sandbox(folder: Path, home: Path) -> Sandbox:
    """Copy the checkout into a folder; what the suite keeps in its cache is shared by all that have the same home."""
    sandbox = _empty_sandbox(folder, home)
    (sandbox.root / "tests").mkdir(parents=True)
    for part in _PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "host")
            shutil.copytree(ROOT / part, sandbox.root / part, ignore=ignored)
        else:
            shutil.copy2(ROOT / part, sandbox.root / part)
    (sandbox.root / ".venv").symlink_to(ROOT / ".venv")
    return sandbox


def make_clone(folder: Path, home: Path, wheels: Path) -> Sandbox:
    """Clone what is committed, with an environment of its own, for commands that install; minutes for the first page.

    Raises
    ------
    RuntimeError
        ``git clone`` or ``make env`` failed, with what they printed.
    """
    sandbox = _empty_sandbox(folder, home)
    kept = home / ".cache" / "perfsuite" / "wheels"
    if wheels.is_dir() and not kept.exists():  # llama.cpp as compiled for this machine
        kept.parent.mkdir(parents=True)
        shutil.copytree(wheels, kept)
    for command in (f"git clone -q {shlex.quote(str(ROOT))} .", "make env"):
        ran = sandbox.run(command, limit_s=3600)
        if ran.status:
            raise RuntimeError(f"{command}: exit code {ran.status}\n{ran.output}")
    return sandbox


def _empty_sandbox(folder: Path, home: Path) -> Sandbox:
    sandbox = Sandbox(root=folder / "perfsuite", home=home, state=folder / "state")
    for each in (sandbox.root, sandbox.home, sandbox.state):
        each.mkdir(parents=True, exist_ok=True)
    (sandbox.state / "folder").write_text(str(sandbox.root))
    (sandbox.state / "status").write_text("0")
    return sandbox


def files_of() -> set[str]:
    paths = [ROOT / part for part in _PARTS]
    found = [each for path in paths for each in (path.rglob("*") if path.is_dir() else [path])]
    return {each.relative_to(ROOT).as_posix() for each in found if each.is_file()}
