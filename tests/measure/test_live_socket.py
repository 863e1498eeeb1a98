"""Looking for the socket of a run."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.live_socket import connect

CONNECT_LIMIT_S = 120.0


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """Return a socket that is not connected yet."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        yield made


def test_a_socket_that_listens_is_connected_to_without_a_word(connection: socket.socket, tmp_path: Path) -> None:
    """Where somebody listens no wait is announced."""
    path = tmp_path / "live.sock"
    said: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        assert connect(connection, path, limit_s=CONNECT_LIMIT_S, announce_wait=lambda: said.append("waits"))
    assert said == []


def test_a_wait_is_announced_once_and_ends_with_the_socket(connection: socket.socket, tmp_path: Path) -> None:
    """A run that begins after its subscriber is found."""
    path = tmp_path / "live.sock"
    said: list[str] = []
    is_waiting = threading.Event()

    def announce() -> None:
        said.append("waits")
        is_waiting.set()

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:

        def begin() -> None:
            is_waiting.wait(CONNECT_LIMIT_S)
            listener.bind(str(path))
            listener.listen()

        thread = threading.Thread(target=begin)
        thread.start()
        assert connect(connection, path, limit_s=CONNECT_LIMIT_S, announce_wait=announce)
        thread.join()
    assert said == ["waits"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_what_is_no_socket_is_not_waited_for(connection: socket.socket, tmp_path: Path, is_folder: bool) -> None:
    """A file and a folder are refused at once."""
    path = tmp_path / "live.sock"
    path.mkdir() if is_folder else path.write_text("")

    def announce() -> None:
        pytest.fail("waits for what is no socket")

    with pytest.raises(MeasurementError, match=r"live\.sock: cannot be subscribed to \(it is no socket\)"):
        connect(connection, path, limit_s=CONNECT_LIMIT_S, announce_wait=announce)


def test_what_is_over_is_not_looked_for(connection: socket.socket, tmp_path: Path) -> None:
    """Where the run has ended there is nothing to connect to."""
    assert not connect(connection, tmp_path / "live.sock", limit_s=CONNECT_LIMIT_S, is_over=lambda: True)
