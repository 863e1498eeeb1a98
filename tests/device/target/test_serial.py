"""A serial console: who logs in, what is stated of a bad one, and what goes wrong in the middle."""

from __future__ import annotations

import base64
import hashlib
import os
import pty
import select
import signal
import subprocess
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path

import pytest

from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError

from ...board_serial import SerialBoard


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[Callable[..., SerialBoard]]:
    with ExitStack() as ends:

        def made(**options: object) -> SerialBoard:
            board = SerialBoard(tmp_path / "home", **options)  # type: ignore[arg-type]
            ends.callback(board.stop)
            return board

        yield made


def test_a_user_logs_in_where_the_console_asks(connected: Callable[..., SerialBoard]) -> None:
    with pytest.raises(LinkError, match=r"asks who logs in; name the user in its address: serial:root@/dev/ttyUSB0$"):
        open_target(connected(asks=": ;").reach()).run(["true"])
    target = open_target(connected(asks=": ;").reach("ada"))
    assert target.run(["cat", "user"]).text == "ada"
    target.close()


def test_a_password_is_given_to_nobody(connected: Callable[..., SerialBoard]) -> None:
    board = connected(asks="printf Password:; read -r none;")
    with pytest.raises(LinkError, match=r"asks for a password, .*; log in once by hand \(picocom\), or let"):
        open_target(board.reach("ada")).run(["true"])


def test_what_arrives_changed_is_a_lost_link(connected: Callable[..., SerialBoard]) -> None:
    board = connected()
    target = open_target(board.reach())
    assert target.run(["echo", "whole"]).text == "whole"
    board.spoil = lambda chunk: chunk.replace(b"K", b"L")  # 'whole' in base64 ends so, wherever chunks end
    with pytest.raises(LinkError, match="what the board said came changed"):
        target.run(["echo", "whole"])
    board.spoil = lambda chunk: chunk
    assert target.run(["echo", "whole"]).text == "whole"
    target.close()


def test_nothing_is_left_on_the_board(connected: Callable[..., SerialBoard]) -> None:
    board = connected()
    target = open_target(board.reach())
    assert target.run(["true"]).status == 0
    assert list(board.home.iterdir())
    target.close()
    until_s = time.monotonic() + 10.0
    while list(board.home.iterdir()) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert not list(board.home.iterdir())


def test_a_script_that_ends_before_anybody_reads_its_input_is_over(tmp_path: Path) -> None:
    """The end of its input goes into a pipe; what nobody has open loses it, and the command never ended."""
    script = (files("perfsuite.device.target") / "console.sh").read_text()
    reader = 'part relay <>"$d/in.$n" 3>&-'
    assert script.count(reader) == 1
    (tmp_path / "console").write_text(script.replace(reader, f"{{ sleep 0.5; {reader}; }}"))
    near, far = pty.openpty()
    tty.setraw(far)
    command = ["sh", str(tmp_path / "console"), "mux", "token", "100"]
    with subprocess.Popen(command, stdin=far, stdout=far, start_new_session=True) as console:
        os.close(far)
        text = base64.b64encode(b"exit 3").decode()
        os.write(near, f"s 1 {hashlib.sha256(text.encode()).hexdigest()[:16]} {text}\no 1\n".encode())
        heard, end_s = b"", time.monotonic() + 20.0
        while b"@token x 1 3" not in heard and select.select([near], [], [], max(0.0, end_s - time.monotonic()))[0]:
            heard += os.read(near, 4096)
        os.killpg(console.pid, signal.SIGKILL)
        os.close(near)
    assert b"@token x 1 3" in heard
