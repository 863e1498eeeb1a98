"""Command lines: words arrive unchanged behind every login shell, and what is no command is refused."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence

import pytest

from perfsuite.device.target.shell import LONGEST_LINE_BYTES, one_line, quoted, run_script, start_script
from perfsuite.errors import DeviceError

#: What some shell or other would change.
HARD = (
    "",
    " a  b ",
    "it's",
    '"',
    "$(id) `id` ${HOME} $HOME",
    "a\nb\n",
    "\t\r\x1b\x7f",
    "\\ \\n \\\\ \\101 \\x41",
    "!! !$ ^a^b",
    "* ? [a] {a,b} ~ ~root",
    "-n",
    "--",
    "%s %n %",
    "a;b&c|d>e<f#g",
    "ä日本🙂",
    "\udcff\udc80",
    "(a) (echo a)",
    "A=B",
    "07",
)
SHELLS = ("dash", "bash", "zsh", "fish", "tcsh")


@pytest.mark.parametrize("shell", SHELLS)
def test_words_arrive_behind_every_login_shell(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"boards: there is no {shell}; 'make test-needs' installs it")

    def told(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
        line = one_line(start_script(words, variables))
        done = subprocess.run([shell, "-c", line], capture_output=True, check=True, timeout=20)
        return [part.decode("utf-8", "surrogateescape") for part in done.stdout.split(b"\0")[:-1]]

    assert told(["printf", "%s\\0", *HARD], {}) == list(HARD)
    wanted = {f"PERF_{index}": word for index, word in enumerate(HARD)} | {"UID": "x", "OPTIND": "a b", "IFS": "0"}
    assert {f"{name}={word}" for name, word in wanted.items()} <= set(told(["env", "-0"], wanted))


def test_a_line_is_harmless() -> None:
    line = one_line(start_script(["printf", *HARD], {}))
    assert line.isprintable()
    assert line.isascii()
    assert not set(line) & set("!`;&|<>~*?[]{}#^%")
    assert quoted("it's $x") == "'it'\\''s $x'"
    with pytest.raises(DeviceError, match=f"{LONGEST_LINE_BYTES} is the most; put what is long into a file"):
        one_line(start_script(["echo", "x" * LONGEST_LINE_BYTES], {}))


@pytest.mark.parametrize("shell", ["dash", "bash", "zsh"])
def test_the_end_of_the_input_ends_the_command(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"boards: there is no {shell}; 'make test-needs' installs it")
    script = run_script(["sh", "-c", "cat >&2; echo . >&2; sleep 61; echo went on >&2"], {}, 90, "mark", input_bytes=4)
    process = launched(shell, script)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"word")
    process.stdin.flush()
    assert process.stderr.readline() == b"word.\n"
    since = time.monotonic()
    process.communicate(timeout=20)
    assert time.monotonic() - since < 4


def test_a_script_that_is_gone_is_not_ended() -> None:
    """Where the script has ended before its input does, nothing is ended: its number may be another's by then."""
    script = run_script(["true"], {}, 5, "mark").replace("kill $$", "echo killed >&4")
    process = subprocess.Popen(
        ["sh", "-c", f"exec 4>&1; {script}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.wait(20) == 0
    assert process.communicate(timeout=20)[0] == b""


def launched(shell: str, script: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([shell, "-c", script], stdin=pipe, stdout=pipe, stderr=pipe)


@pytest.mark.parametrize(
    ("command", "environment", "words"),
    [
        (["-x"], {}, "names no program"),
        (["a\0b"], {}, "holds a NUL"),
        (["a", "\ud800"], {}, "half a character"),
        (["a"], {"x;id": "x"}, "no name of a variable"),
        (["a"], {"A\n": "x"}, "no name of a variable"),
        (["a"], {"A": "\0"}, "holds a NUL"),
    ],
)
def test_what_is_no_command_is_refused(command: list[str], environment: dict[str, str], words: str) -> None:
    with pytest.raises(DeviceError, match=words) as refused:
        start_script(command, environment)
    assert "\n" not in str(refused.value)
