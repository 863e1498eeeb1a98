"""A program that runs under a recorder behaves as it does without."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.traced_program import run_traced

_LIMIT_S = 60

#: Runs what follows its own arguments, in a process that has no terminal.
_RUNNER = """
import sys
from perfsuite.measure.traced_program import run_traced
sys.exit(run_traced(sys.argv[1:], {"A": "b"}))
"""


def started(*command: str) -> subprocess.Popen[str]:
    """Start a runner of a command in a session of its own; a shell in the background makes its jobs ignore SIGINT."""
    line = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{_RUNNER}"]
    return subprocess.Popen([*line, *command], text=True, start_new_session=True, stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("script", "expected"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_the_programs(script: str, expected: int) -> None:
    """An exit code comes back as it is, and a signal as a shell gives it; after it, signals are ours again."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run_traced(["sh", "-c", script], {}) == expected
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_streams_and_environment_pass_through() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUNNER, "sh", "-c", 'cat; printf "%s\\0" "$A"; printf err >&2; exit 5'],
        input=b"in\xff\x00",
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, b"in\xff\x00b\0", b"err")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_handed_on(number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got; exit 9' {name}; echo ready; for n in $(seq {_LIMIT_S * 20}); do sleep 0.05; done"
    runner = started("sh", "-c", script)
    assert runner.stdout is not None
    assert runner.stdout.readline() == "ready\n"
    runner.send_signal(number)
    out, _ = runner.communicate(timeout=_LIMIT_S)
    assert (runner.returncode, out) == (9, "got\n")


@pytest.mark.parametrize(("leaves", "expected"), [("", b"1 interrupt"), ("os.setsid(); ", b"0 interrupt")])
def test_ctrl_c_reaches_the_program_through_its_terminal_alone(leaves: str, expected: bytes) -> None:
    """A terminal interrupts the program by itself, and we hand nothing on: one that has left it hears nothing."""
    counter = (
        f"import os, signal, time; {leaves}got = []; signal.signal(signal.SIGINT, lambda *_: got.append(1)); "
        "print('ready', flush=True); time.sleep(1); print(len(got), 'interrupt', flush=True); raise SystemExit(4)"
    )
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    line = [sys.executable, "-c", spawn, sys.executable, "-c", _RUNNER, sys.executable, "-c", counter]
    runner = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert runner.stdout is not None
    assert runner.stdin is not None
    assert runner.stdout.readline().strip() == b"ready"
    runner.stdin.write(b"\x03")
    runner.stdin.flush()
    out, _ = runner.communicate(timeout=_LIMIT_S)
    assert expected in out
    assert runner.returncode == 4


def test_what_is_ignored_stays_ignored() -> None:
    script = f"trap '' HUP; exec {sys.executable} -c \"$0\" sh -c 'kill -HUP $$; echo alive'"
    done = subprocess.run(["sh", "-c", script, _RUNNER], capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_a_watch_that_fails_lets_the_program_end(tmp_path: Path) -> None:
    """The user's program is worth more than its trace; why there is none is reported after it."""

    @contextmanager
    def failing(pid: int) -> Iterator[None]:
        raise MeasurementError(f"process {pid}: cannot be watched")
        yield

    with pytest.raises(MeasurementError, match="cannot be watched"):
        run_traced(["sh", "-c", f"sleep 0.2; echo done > {tmp_path}/file"], {}, failing)
    assert (tmp_path / "file").read_text() == "done\n"
