"""The ``perfsuite`` command itself."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import main

Streams = pytest.CaptureFixture[str]


def test_the_versions_are_told(capsys: Streams) -> None:
    """The first is the package's own; what is measured and with what follows, a line each."""
    assert main(["--version"]) == 0
    first, python, engine, *packages = capsys.readouterr().out.splitlines()
    assert first == f"perfsuite {__version__}"
    assert python.startswith(f"Python {platform.python_version()} on ")
    assert re.match("llama.cpp build [0-9a-f]{16} in ", engine)
    assert any(re.match(r"llama-cpp-python \d", line) for line in packages)


def loaded_by(*words: str) -> set[str]:
    """Return the modules that a command loads beyond the package's own start."""
    script = (
        "import sys\nfrom perfsuite.cli import main\nbefore = set(sys.modules)\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\nprint(*sorted(set(sys.modules) - before))"
    )
    line = [sys.executable, "-c", script, *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_versions_load_little() -> None:
    """Neither the commands, nor what reads packages, plans or numbers: the answer is there at once."""
    loaded = loaded_by("--version")
    slow = {"argparse", "email", "importlib.metadata", "msgspec", "numpy", "rich", "platformdirs", "pytest"}
    assert not loaded & slow
    assert sorted(each.partition(".")[2] for each in loaded if each.startswith("perfsuite.")) == [
        *("cli.ending", "cli.versions", "device", "device.end_requests", "errors"),
        *("measure", "measure.engine", "measure.environment"),
    ]


def test_a_command_loads_no_other_and_the_help_none() -> None:
    slow = {"numpy", "rich", "perfsuite.cli.architectures", "perfsuite.expectation"}
    assert not loaded_by("--help") & slow
    commands = {"perfsuite.cli.architectures", "perfsuite.experiments.tracing.command"}
    assert loaded_by("architectures") & commands == {"perfsuite.cli.architectures"}


def _run(words: list[str], **streams: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "perfsuite.cli", *words]
    return subprocess.run(line, text=True, timeout=60, check=False, **streams)  # type: ignore[call-overload, no-any-return]


_FULL = Path("/dev/full")


@pytest.mark.skipif(not _FULL.exists(), reason="no /dev/full")
def test_where_nothing_can_be_said_the_exit_code_says_it() -> None:
    """With both outputs full there is no line, and no traceback elsewhere."""
    with _FULL.open("w") as full:
        for line in (["architectures"], ["--help"]):
            assert _run(line, stdout=full, stderr=full).returncode == 2
        assert _run(["baseline", "diff", "none"], stdout=subprocess.PIPE, stderr=full).returncode == 2


@pytest.mark.parametrize("words", ["architectures", "--help"])
def test_a_closed_output_is_a_line_and_an_exit_code(words: str) -> None:
    """As when a shell closed it by >&-."""
    line = f"'{sys.executable}' -m perfsuite.cli {words} >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("perfsuite: error: standard output is closed")
    assert done.stderr.count("\n") == 1


def test_a_closed_error_output_goes_not_into_the_answer() -> None:
    """What is reported beside the answer is lost with it, and does not end up in the answer."""
    line = f"'{sys.executable}' -m perfsuite.cli baseline diff none 2>&-"
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_an_output_that_has_few_letters_gets_escapes() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = _run(["reproduce", "life", "--table", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """A pipe that is closed early, as by head, ends the command in silence, also as the interpreter ends."""
    reader, writer = os.pipe()
    os.close(reader)
    words = ["synthesize", "smollm2-135m", "--layers", "1", "-o", str(tmp_path / "x.gguf")]
    done = _run(words, stdout=writer, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": ""})
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
