"""The ``perfsuite`` command itself."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import main
from perfsuite.cli.registry import COMMANDS, Purpose

Streams = pytest.CaptureFixture[str]


def test_the_versions_are_told(capsys: Streams) -> None:
    """The first is the package's own; what is measured and with what follows, a line each."""
    assert main(["--version"]) == 0
    first, python, engine, *packages = capsys.readouterr().out.splitlines()
    assert first == f"perfsuite {__version__}"
    assert python.startswith(f"Python {platform.python_version()} on ")
    assert re.match("llama.cpp build [0-9a-f]{16} in ", engine)
    assert any(re.match(r"llama-cpp-python \d", line) for line in packages)


def test_the_versions_load_little() -> None:
    """Neither the commands, nor what reads packages, plans or numbers: the answer is there at once."""
    script = (
        "import sys\nfrom perfsuite.cli import main\nbefore = set(sys.modules)\nmain(['--version'])\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    slow = {"argparse", "email", "importlib.metadata", "msgspec", "numpy", "rich", "platformdirs", "pytest"}
    assert not loaded & {*slow, "perfsuite.cli.registry", "perfsuite.measure.launch", "perfsuite.measure.plan"}
    assert {each for each in loaded if each.startswith("perfsuite.")} == {
        "perfsuite.cli.ending",
        "perfsuite.cli.outputs",
        "perfsuite.cli.versions",
        "perfsuite.device",
        "perfsuite.device.end_requests",
        "perfsuite.errors",
        "perfsuite.masking",
        "perfsuite.measure",
        "perfsuite.measure.engine",
        "perfsuite.measure.environment",
    }


def test_the_help_lists_every_command_by_its_purpose(capsys: Streams) -> None:
    """One line each, below a heading, as the registry has them."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert all(any(line.startswith(f"{command.name} ") for line in lines) for command in COMMANDS)
    assert all(f"{purpose.value}:" in lines for purpose in Purpose)


def test_a_mistyped_path_is_answered_by_the_nearest(tmp_path: Path, capsys: Streams) -> None:
    """A run's file that is not there, where another one beside it has almost its name."""
    (tmp_path / "run.json").write_text("{}")
    assert main(["baseline", "diff", str(tmp_path / "run.jsno")]) == 2
    assert f"run.jsno: no such file or folder; did you mean {tmp_path}/run.json?" in capsys.readouterr().err


def test_the_help_loads_no_subcommand() -> None:
    """Help, a mistyped command and the list of names need the registry alone; one subcommand loads no other."""
    script = (
        "import sys\nfrom perfsuite.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('perfsuite.') or name in ('numpy', 'rich')))"
    )
    loaded = {}
    for words in (("--help",), ("architectures",)):
        line = [sys.executable, "-c", script, *words]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
        loaded[words] = set(done.stdout.splitlines()[-1].split())
    assert not loaded["--help",] & {"numpy", "rich", "perfsuite.cli.architectures", "perfsuite.expectation"}
    assert loaded["architectures",] & {"perfsuite.cli.architectures", "perfsuite.experiments.tracing.command"} == {
        "perfsuite.cli.architectures"
    }


def _run(words: list[str], **streams: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "perfsuite.cli", *words]
    return subprocess.run(line, text=True, timeout=60, check=False, **streams)  # type: ignore[call-overload, no-any-return]


_FULL = Path("/dev/full")


@pytest.mark.skipif(not _FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize(
    "words",
    [["--help"], ["reproduce", "life", "--json"]],
    ids=" ".join,
)
def test_a_full_device_is_a_line_and_an_exit_code(words: list[str]) -> None:
    """Whatever the answer is, and however long: where it cannot be written, one line says so."""
    with _FULL.open("w") as full:
        done = _run(words, stdout=full, stderr=subprocess.PIPE)
    told = "perfsuite: error: standard output cannot be written (No space left on device); the answer is not whole\n"
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.skipif(not _FULL.exists(), reason="no /dev/full")
def test_where_nothing_can_be_said_the_exit_code_says_it() -> None:
    """With both outputs full there is no line, and no traceback elsewhere."""
    with _FULL.open("w") as full:
        assert _run(["architectures"], stdout=full, stderr=full).returncode == 2
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
    """An encoding without a letter of the answer is no traceback."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = _run(["reproduce", "life", "--table", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def _raising(error: BaseException) -> Callable[..., None]:
    def instead(*_: object) -> None:
        raise error

    return instead


def test_an_interrupt_is_told(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """Ctrl-C ends with 130 and a word, without a traceback."""
    monkeypatch.setattr("perfsuite.cli.architectures.names", _raising(KeyboardInterrupt()))
    assert main(["architectures"]) == 130
    assert capsys.readouterr().err == "perfsuite: interrupted\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """A pipe that is closed early, as by head, ends the command in silence, also as the interpreter ends."""
    reader, writer = os.pipe()
    os.close(reader)
    words = ["synthesize", "smollm2-135m", "--layers", "1", "-o", str(tmp_path / "x.gguf")]
    line = [sys.executable, "-m", "perfsuite.cli", *words]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(line, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
