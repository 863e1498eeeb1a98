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
    """The script of bash in a file."""
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
        (["forecast", "--architecture", "smollm2-13"], {"smollm2-135m"}),
        (["forecast", "--variant", "bf16-int4-kv"], {"bf16-int4-kv4"}),
        (["roofline", "--sweep", "dep"], {"depth"}),
        (["sweep", "g"], {"gemm", "gemv"}),
        (["sweep", "gemv", "--type", "q8"], {"q8_0"}),
        (["live", "--backend", ""], {"cpu", "opencl"}),
        (["baseline", "ap"], {"approve"}),
        (["policy", "che"], {"check"}),
        (["plot", "life-fig3"], {"life-fig3"}),
        (["trace", "v"], {"view"}),
        (["calibrate", "-q", "--rou"], {"--rounds"}),
        (["completion", "ba"], {"bash"}),
        # Files and folders for what reads or writes a file, folders alone for a folder.
        (["baseline", "diff", "run"], {"run.json", "runs"}),
        (["experts", "run"], {"run.json", "runs"}),
        (["report", "run"], {"run.json", "runs"}),
        (["study", "--output", "run.j"], {"run.json"}),
        (["live", "--model", "run.j"], {"run.json"}),
        (["trace", "--output", "run"], {"runs"}),
        (["baseline", "show", "--baseline-dir", "run"], {"runs"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bash_completes_words(script: Path, words: list[str], offered: set[str], folder: Path) -> None:
    """Subcommands, actions, options, the values of options that have a few, and files where they are wanted."""
    assert press(script, words, folder) == offered


def test_bash_has_the_completion_registered(script: Path, folder: Path) -> None:
    """Sourcing the script is all that it takes, and it says nothing."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    line = [bash, "--norc", "-c", 'source "$1" && complete -p perfsuite', "x", str(script)]
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder, timeout=60, check=True)
    assert done.stdout.startswith("complete ")
    assert done.stdout.endswith("perfsuite\n")


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


@pytest.mark.parametrize("name", ["bash-completion/completions/perfsuite", "fish/vendor_completions.d/perfsuite.fish"])
def test_what_a_wheel_installs_completes(name: str, folder: Path) -> None:
    """The files below share/ offer the same, with the devices that ship."""
    file, devices = SHARE / name, {"host", *shipped_names()}
    if name.startswith("bash"):
        assert press(file, ["baseline", "ap"], folder) == {"approve"}
        assert press(file, ["forecast", "--device", ""], folder) == devices
        return
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    for words, offered in (("baseline ap", {"approve"}), ("forecast --device ", devices)):
        script = f"source {file}; complete -C 'perfsuite {words}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60, check=True
        )
        assert {line.split("\t")[0] for line in done.stdout.splitlines()} == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_finds_what_a_wheel_installs() -> None:
    """With its folder in $fpath, compinit makes _perfsuite the function of the command."""
    script = (
        f"fpath=({SHARE}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[perfsuite]"
    )
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "_perfsuite\n"
