"""Real sockets, one thread: who listens, who does not, and who has gone."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.live_server import BACKLOG_LINES, BUFFER_BYTES, MOST_SUBSCRIBERS, LiveServer, open_server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "live.sock"


@contextmanager
def subscribed(server: LiveServer, path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.settimeout(30)
        server.wait(30)
        yield connection


def read(connection: socket.socket, n_lines: int) -> list[str]:
    with connection.makefile("r", newline="\n") as lines:
        return [next(lines).rstrip("\n") for _ in range(n_lines)]


def read_all(server: LiveServer, connection: socket.socket) -> list[str]:
    connection.setblocking(False)
    content = b""
    for _ in range(10000):
        server.wait(0)
        try:
            content += connection.recv(1 << 20)
        except BlockingIOError:
            break
    return content.decode().splitlines()


def test_who_comes_late_is_told_what_was(path: Path) -> None:
    with open_server(path) as server:
        server.publish([str(number) for number in range(BACKLOG_LINES)])
        server.publish(["a kernel"], is_kept=False)
        server.publish(["x", "y"])
        with subscribed(server, path) as late:
            loss, *lines = read(late, BACKLOG_LINES + 1)
            assert json.loads(loss) == {"kind": "loss", "where": "backlog", "n_records": 2}
            assert lines == [*map(str, range(2, BACKLOG_LINES)), "x", "y"]


@pytest.mark.parametrize("is_at_once", [False, True])
def test_a_subscriber_that_does_not_read_loses_whole_lines_and_is_told(path: Path, is_at_once: bool) -> None:
    """The server never waits; in the end the lines that came and those that are reported as lost are all, in order.

    What is flushed tells of losses that no line follows.
    """
    lines = [f"{number:08d}{'x' * 991}" for number in range(4 * BUFFER_BYTES // 1000)]
    n_quick = 0
    with open_server(path) as server, subscribed(server, path) as slow, subscribed(server, path) as quick:
        for each in [lines] if is_at_once else ([line] for line in lines):
            server.publish(each)
            n_quick += len(read(quick, 1))
        server.flush(0)
        seen = read_all(server, slow)
        server.publish(["last"])
        seen += read_all(server, slow)
    assert is_at_once or n_quick == len(lines)
    came = [each for each in seen if each.endswith("x")]
    losses = [json.loads(each) for each in seen if each.startswith("{")]
    assert {each["where"] for each in losses} == {"subscriber"}
    assert sum(each["n_records"] for each in losses) == len(lines) - len(came)
    assert BUFFER_BYTES // 2000 < len(came) < len(lines)
    assert came == (sorted(came) if is_at_once else lines[: len(came)])
    assert seen[-1] == "last"


def test_there_is_a_limit_to_subscribers(path: Path) -> None:
    with open_server(path) as server:
        all_of_them = [subscribed(server, path) for _ in range(MOST_SUBSCRIBERS + 1)]
        *_, last = [each.__enter__() for each in all_of_them]
        server.publish(["x"])
        assert last.recv(10) == b""
        assert len(server._subscribers) == MOST_SUBSCRIBERS
        for each in all_of_them:
            each.__exit__(None, None, None)


def test_the_socket_is_the_users_alone_and_goes_with_the_server(path: Path) -> None:
    with open_server(path):
        assert path.is_socket()
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == []


def test_a_stale_socket_is_replaced(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with open_server(path) as server, subscribed(server, path) as connection:
        server.publish(["x"])
        assert read(connection, 1) == ["x"]


def test_a_living_socket_is_left_alone(path: Path) -> None:
    with open_server(path) as server:
        with pytest.raises(MeasurementError, match="another run offers its records there"), open_server(path):
            pass
        server.wait(0)  # the second one's probe
        with subscribed(server, path) as connection:
            server.publish(["x"])
            assert read(connection, 1) == ["x"]


def test_a_file_in_the_sockets_place_stays(path: Path) -> None:
    """What took the path meanwhile is not removed, and no server is opened over it."""
    with open_server(path):
        path.unlink()
        path.write_text("mine")
    with pytest.raises(MeasurementError, match="is not a socket"), open_server(path):
        pass
    assert path.read_text() == "mine"


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    told = r"has mode 0755 and owner \d+, expected a folder of your own"
    with pytest.raises(MeasurementError, match=told), open_server(tmp_path / "live.sock"):
        pass
