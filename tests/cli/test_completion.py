"""Completion by shells."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.cli.completion import completion_script
from perfsuite.cli.registry import COMMANDS
from perfsuite.device.profile import profile_names
from perfsuite.device.profile.search import shipped_names
from perfsuite.workload.scenario import scenario_names
from tests.command_streams import Streams

SHARE = Path(__file__).resolve().parents[2] / "share"

#: Completes a command line as bash does when a key is pressed: by the function that was registered for the command.
_PRESS = """
source "$1"; shift
function=$(complete -p perfsuite | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
"$function" perfsuite "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "perfsuite.bash"
    path.write_text(completion_script("bash"), "utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file and another folder."""
    (tmp_path / "run.json").touch()
    (tmp_path / "runs").mkdir()
    return tmp_path


def press(script: Path, words: Sequence[str], folder: Path) -> set[str]:
    """Return what bash would offer behind these words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    line = [bash, "--norc", "--noprofile", "-c", _PRESS, "press", str(script), "perfsuite", *words]
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder, timeout=60, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], {command.name for command in COMMANDS}),
        (["tra"], {"trace"}),
        (["forecast", "--dev"], {"--device"}),
        (["forecast", "--device", ""], set(profile_names())),
        (["certify", "--scenario", ""], set(scenario_names())),
        (["sweep", "gemv", "--type", "q8"], {"q8_0"}),
        (["baseline", "ap"], {"approve"}),
        (["trace", "v"], {"view"}),
        (["calibrate", "-q", "--rou"], {"--rounds"}),
        # Files and folders for what reads or writes a file, folders alone for a folder.
        (["baseline", "diff", "run"], {"run.json", "runs"}),
        (["study", "--output", "run.j"], {"run.json"}),
        (["baseline", "show", "--baseline-dir", "run"], {"runs"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bash_completes_words(script: Path, words: list[str], offered: set[str], folder: Path) -> None:
    """Subcommands, actions, options, the values of options that have a few, and files where they are wanted."""
    assert press(script, words, folder) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_every_script_knows_every_command(shell: str, tmp_path: Path, capsys: Streams) -> None:
    """It goes to standard output, and names all subcommands; a shell that is installed finds no fault with it."""
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [command.name for command in COMMANDS if command.name not in out] == []
    if (executable := shutil.which(shell)) is not None:
        (tmp_path / "script").write_text(out, "utf-8")
        line = [executable, "-n", str(tmp_path / "script")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_what_a_wheel_installs_completes(folder: Path) -> None:
    """The files below share/ offer the same, with the devices that ship."""
    file = SHARE / "bash-completion/completions/perfsuite"
    assert press(file, ["baseline", "ap"], folder) == {"approve"}
    assert press(file, ["forecast", "--device", ""], folder) == {"host", *shipped_names()}
