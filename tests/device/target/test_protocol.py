"""What every way to a device does alike: a local shell, a real sshd, phones behind adb, and a serial console."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfsuite.device.reach import Reach
from perfsuite.device.target import shell_target
from perfsuite.device.target.opening import open_target
from perfsuite.device.target.protocol import Completed
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import LinkError, MeasurementError

from ...board_adb import adb_server
from ...board_namespaces import NamespaceBoard
from ...board_serial import SerialBoard

#: Any text that a program's argument can be, those bytes that are no UTF-8 among it, with what shells change in front.
_PIECES = (
    "'",
    '"',
    "$(id)",
    "`id`",
    "${HOME}",
    "\n",
    "\\",
    "\\n",
    " ",
    "-",
    "--",
    "!",
    "*",
    "~/",
    "%s",
    ";",
    "\udcff",
    "é",
)
WORDS = st.lists(
    st.one_of(
        st.sampled_from(_PIECES),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6),
        st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF), max_size=3),
    ),
    max_size=6,
).map("".join)
NAMES = (
    WORDS.map(lambda text: text.replace("/", "_"))
    .filter(lambda text: text not in ("", ".", "..", "~"))
    .filter(lambda text: len(as_bytes(text)) < 200)
)
VARIABLES = st.dictionaries(st.from_regex(r"\APERF_[A-Za-z0-9_]{0,8}\Z"), WORDS, max_size=3)

#: A test of a function is run many times with one target; that is wanted.
MANY = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SOME = settings(MANY, max_examples=4)


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@pytest.fixture(
    scope="module", params=["local", pytest.param("ssh", marks=pytest.mark.runs_on_a_board), "adb", "serial"]
)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    if request.param == "local":
        yield open_target(Reach(way="local"))
    elif request.param == "adb":
        with adb_server(tmp_path_factory.mktemp("adb"), "0123"):
            yield open_target(Reach(way="adb", address="0123"))
    elif request.param == "serial":
        board = SerialBoard(tmp_path_factory.mktemp("serial") / "home")
        target = open_target(board.reach())
        yield target
        target.close()
        board.stop()
    else:
        there: NamespaceBoard = request.getfixturevalue("board")
        target = open_target(there.reach())
        yield target
        target.close()


@pytest.fixture
def folder(target: Target) -> Iterator[str]:
    made = target.run(["mktemp", "-d"]).text
    path = f"{made}/it's a $(folder)"
    assert target.run(["mkdir", path]).status == 0
    yield path
    assert target.run(["rm", "-rf", made]).status == 0


@MANY
@given(words=st.lists(WORDS, max_size=4), environment=VARIABLES)
@example(words=["", "-n", "$(id)\n", "'\\''"], environment={"PERF_": "a\n'$(id)'\\"})
def test_words_and_variables_arrive_unchanged(target: Target, words: list[str], environment: dict[str, str]) -> None:
    told = target.run(["sh", "-c", 'printf "%s\\0" "$@"; env -0', "sh", "", *words], environment=environment)
    parts = told.output.split(b"\0")
    assert told.status == 0
    assert parts[: len(words) + 1] == [b"", *map(as_bytes, words)]
    own = sorted(part for part in parts[len(words) + 1 :] if part.startswith(b"PERF_"))
    assert own == sorted(as_bytes(f"{name}={text}") for name, text in environment.items())


@SOME
@given(words=st.lists(WORDS, max_size=3), environment=VARIABLES)
def test_a_started_command_has_them_unchanged(target: Target, words: list[str], environment: dict[str, str]) -> None:
    script = 'printf "%s\\0" "$@"; cat; env -0'
    process = target.start(["sh", "-c", script, "sh", "", *words], environment=environment)
    output, _ = process.communicate(b"in\0", timeout=20)
    parts = output.split(b"\0")
    assert parts[: len(words) + 2] == [b"", *map(as_bytes, words), b"in"]
    assert {as_bytes(f"{name}={text}") for name, text in environment.items()} <= set(parts)


@pytest.mark.long_but_first
@SOME
@given(name=NAMES, content=st.binary(max_size=300))
@example(name="-rf", content=b"")
@example(name="a=b 'c'\n$(d)", content=b"\0\n\r\n")
def test_files_go_there_and_back(target: Target, folder: str, name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as here:
        source, back = Path(here) / "source", Path(here) / "deep" / name
        source.write_bytes(content)
        target.put(source, f"{folder}/new/{name}")
        assert target.run(["cat", f"{folder}/new/{name}"]).output == content
        assert target.run(["find", f"{folder}/new", "-type", "f", "-print0"]).output.count(b"\0") == 1
        target.get(f"{folder}/new/{name}", back)
        assert back.read_bytes() == content
        assert os.listdir(os.fsencode(back.parent)) == [as_bytes(name)]
    assert target.run(["rm", "-rf", f"{folder}/new"]).status == 0


@SOME
@given(name=NAMES)
@example(name="a=b")
@example(name="it's $(me)")
def test_a_program_with_any_name_runs(target: Target, folder: str, name: str) -> None:
    path = f"{folder}/{name}"
    assert target.run(["sh", "-c", 'printf "#!/bin/sh\\necho \\"\\$1\\"" >"$1"; chmod +x "$1"', "sh", path]).status == 0
    for _ in range(3):  # a file that was just written may be busy in another process for a moment
        if (told := target.run([path, "ran"])).status != 126:
            break
    assert told.output == b"ran\n"


def test_a_command_that_fails_is_no_error(target: Target) -> None:
    told = target.run(["sh", "-c", "echo out; echo err >&2; exit 255"])
    assert told == Completed(status=255, output=b"out\n", errors=b"err\n")
    assert target.run(["there-is-no-such-program"]).status == 127


def test_input_arrives(target: Target) -> None:
    told = bytes(range(256)) * 2000
    assert target.run(["cat"], stdin=told).output == told
    assert target.run(["cat"]).output == b""


def test_the_home_is_the_one_there(target: Target) -> None:
    """``~/`` of a program and of a file's path is the home of the device, and a relative path begins there."""
    home = target.run(["sh", "-c", 'echo "$HOME"; pwd']).text.split("\n")
    assert home[0] == home[1]
    name = f".perfsuite-test-{os.getpid()}"
    try:
        target.put(Path(__file__), f"~/{name}/a file")
        assert target.run(["cat", f"{name}/a file"]).output == Path(__file__).read_bytes()
        assert target.run(["sh", "-c", 'cp /bin/echo "$1/my echo"', "sh", name]).status == 0
        assert target.run([f"~/{name}/my echo", "~/x"]).text == "~/x"
    finally:
        target.run(["rm", "-rf", name])


def test_past_its_limit_a_command_is_ended_there(target: Target) -> None:
    token = f"{os.getpid()}{time.monotonic_ns()}"
    with pytest.raises(MeasurementError, match="'sh' ran past its limit of 1 s and was ended; look what"):
        target.run(["sh", "-c", "sleep 60; :", token], limit_s=1)
    listed = target.run(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; :"]).text
    assert token not in listed


def test_what_is_started_talks(target: Target) -> None:
    process = target.start(["sh", "-c", 'while read -r line; do echo "<$line>"; done; exit 7'])
    assert process.stdin is not None
    assert process.stdout is not None
    assert os.getsid(process.pid) != os.getsid(0)
    for word in (b"one", b"two"):
        process.stdin.write(word + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"<" + word + b">\n"
    process.communicate(timeout=20)
    assert process.returncode == 7


def test_the_same_content_is_not_sent_again(target: Target, folder: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"one")
    place = f"{folder}/x"
    stamp = ["stat", "-c", "%i %Y", place]
    target.put(source, place)
    target.run(["touch", "-d", "2001-01-01", place])
    before = target.run(stamp).text
    target.put(source, place)
    assert target.run(stamp).text == before
    source.write_bytes(b"two")
    target.put(source, place)
    assert target.run(["cat", place]).text == "two"


def test_leftovers_of_dead_processes_are_swept(target: Target, folder: str, tmp_path: Path) -> None:
    """The temporary file of a put that died is gone after the next, whoever has its number now; a live one stays."""
    source = tmp_path / "source"
    source.write_bytes(b"content")
    target.put(source, f"{folder}/x")
    stem = ".perfsuite-2d711642b726b044"  # the hash of the name x
    started = target.run(["cat", "/proc/1/stat"]).text.rpartition(")")[2].split()[19]
    left = (f"{stem}.999999999-1", f"{stem}.1-{started}1", f"{stem}.1", f"{stem}.-", f"{stem}.1-{started}")
    assert target.run(["touch", *(f"{folder}/{name}" for name in left)]).status == 0
    source.write_bytes(b"another")
    target.put(source, f"{folder}/x")
    assert target.run(["ls", "-A", folder]).text.split("\n") == [left[-1], "x"]


@pytest.mark.parametrize("path", ["", "/", "a/", "..", "~", "a/."])
def test_a_path_that_can_be_no_files_is_refused(target: Target, path: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    with pytest.raises(LinkError, match="names no file on the device"):
        target.put(source, path)
    with pytest.raises(LinkError, match="names no file on the device"):
        target.get(path, tmp_path / "back")


def test_what_cannot_be_copied_is_told(target: Target, folder: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    for call, words in (
        (lambda: target.put(tmp_path / "missing", "x"), "missing: cannot be read"),
        (lambda: target.put(source, folder), "it is a folder or a device, no file"),
        (lambda: target.put(source, "/proc/no/such"), "was not put: .*mkdir.*; what was there stays"),
        (lambda: target.get(f"{folder}/missing", tmp_path / "back"), "there is no such file on the device"),
        (lambda: target.get(folder, tmp_path / "back"), "it is a folder or a device, no file"),
    ):
        with pytest.raises(LinkError, match=words) as failed:
            call()
        assert "\n" not in str(failed.value).replace(folder, "")
    assert not (tmp_path / "back").exists()


def test_a_ctrl_c_leaves_nothing_half(target: Target, folder: str, tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"small")
    with large.open("wb") as out:
        out.truncate(250 << 20)
    target.put(small, f"{folder}/x")
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.5):
        target.put(large, f"{folder}/x")
    end = time.monotonic() + 10
    while (left := target.run(["ls", "-A", folder]).text) != "x" and time.monotonic() < end:
        time.sleep(0.1)
    assert left == "x"
    assert target.run(["cat", f"{folder}/x"]).text == "small"


def test_a_ctrl_c_ends_the_command_there(target: Target, tmp_path: Path) -> None:
    token = f"{os.getpid()}{time.monotonic_ns()}"
    with pytest.raises(KeyboardInterrupt), interrupted_after(0.7):
        target.run(["sh", "-c", f"sleep 60{token[-6:]}; :", token])
    assert not [word for word in (token, f"sleep 60{token[-6:]}") if word in commands_of(target)]


def test_endless_output_is_ended(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_target, "OUTPUT_LIMIT_BYTES", 1 << 20)
    since = time.monotonic()
    with pytest.raises(MeasurementError, match="'yes' wrote more than 1 MiB and was ended; let it write"):
        target.run(["yes", (token := f"{os.getpid()}{time.monotonic_ns()}")])
    assert time.monotonic() - since < 15
    assert token not in commands_of(target)


def test_a_file_that_grows_is_not_got(target: Target, folder: str, tmp_path: Path) -> None:
    assert target.run(["sh", "-c", 'head -c 1000000 /dev/zero >"$1/x"; echo >"$1/go"', "sh", folder]).status == 0
    process = target.start(["sh", "-c", 'while [ -e "$1/go" ]; do head -c 4096 /dev/zero; done >>"$1/x"', "sh", folder])
    try:
        with pytest.raises(LinkError, match=r"x'? was not got: it grew beyond the \d+ bytes that it had"):
            target.get(f"{folder}/x", tmp_path / "back")
    finally:
        target.run(["rm", f"{folder}/go"])
        process.communicate(timeout=20)
    assert os.listdir(tmp_path) == []


def test_what_a_device_says_is_fit_for_a_terminal(target: Target, tmp_path: Path) -> None:
    assert target.run(["sh", "-c", 'printf "a\\033[2Jb\\r\\n" >&2; exit 3']).last_words == "a?[2Jb"
    with pytest.raises(LinkError) as failed:
        target.get("/no\nsuch\x1b[31m", tmp_path / "back")
    assert str(failed.value).endswith(r": '/no\nsuch\x1b[31m': there is no such file on the device")


def commands_of(target: Target) -> str:
    time.sleep(0.2)
    return target.run(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; :"]).text


@contextmanager
def interrupted_after(delay_s: float) -> Iterator[None]:
    held = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, delay_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, held)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
