"""Stored records, so that nothing is measured; eBPF and test boards, where there can be any; no process is left."""

from __future__ import annotations

import difflib
import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from perfsuite.errors import PerfsuiteError
from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper
from perfsuite.measure.plan import load_record
from perfsuite.records.events import EngineRecord
from perfsuite.records.whole_file import write_whole_bytes
from tests.command_streams import phase_run as phase_run
from tests.command_streams import refused as refused

from .board_links import LinkedBoard, linked_params
from .board_links import linked_board as made_linked_board
from .board_loopback import LoopbackBoard, loopback_obstacle
from .board_namespaces import NamespaceBoard, board_obstacle
from .browser_chromium import browser as browser
from .browser_chromium import visit as visit
from .left_processes import end, left_by_tests, mark_run
from .own_bundle import make_own_bundle

#: What a background job, nohup or a CI ignores or blocks, and what is started here would inherit: as in a terminal.
_ORDINARY = {
    signal.SIGINT: signal.default_int_handler,
    **dict.fromkeys((signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)),
}
for _number, _handler in _ORDINARY.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler or signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, ())

#: What a reader's terminal or another run of tests may have set: with PYTEST_XDIST_WORKER, pytest-benchmark takes runs
#: within the tests for xdist's own.
for _name in ("PYTEST_XDIST_WORKER", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS", "LINES"):
    os.environ.pop(_name, None)
os.environ["TERM"] = "xterm"
mark_run()

#: How long an example takes says something of the machine, and nothing of what is tested.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

DATA = Path(__file__).parent / "data"

#: What people and programs read of a view, whole: ``golden`` compares with it.
GOLDEN = DATA / "golden"

#: Compares a text with the golden file of a name.
Golden = Callable[[str, str], None]

#: The run that tests/data holds: 64 tokens of prompt, 24 generated, two layers of SmolLM2-135M in Q8_0, two threads.
STORED_MODEL = "smollm2-135m-l2-q8_0"

#: The marker of tests that trace with eBPF.
_EBPF = "traces_with_ebpf"

#: The marker of tests that run on a test board, and the fixtures that mean it.
_BOARDS = "runs_on_a_board"
_BOARD_FIXTURES = {"requires_board", "requires_loopback_board"}

#: What takes seconds to start, or 'make test' does not install: boards of namespaces, a farm, a browser, Arm.
_LONG_FIXTURES = {"requires_board", "farm", "browser", "bundle", "arm_root", "arm_bundle", "requires_emulator"}

#: The tests that are counted at the end, by their marker, since their absence must not pass in silence: what they do.
_COUNTED = {_EBPF: "traced with eBPF", _BOARDS: "ran on a test board", "measures": "measured"}


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let runs within the tests lock a folder of their own, so that they contend with no run on this machine."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFSUITE_LOCK_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def shared_engine_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the processes of one run of tests share what is compiled, which is kept by its content."""
    if hasattr(request.config, "workerinput"):
        own = tmp_path_factory.getbasetemp()
        shared = own.parent / "engine-cache"
        shared.mkdir(exist_ok=True)
        (own / "engine-cache").symlink_to(shared)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with the file of that name, and show what differs; with ``--update-golden``, write the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole_bytes(path, text.encode(), PerfsuiteError)
        stored = path.read_bytes().decode() if path.exists() else ""
        if stored != text:
            lines = (each.splitlines(keepends=True) for each in (stored, text))
            pytest.fail("".join(difflib.unified_diff(*lines, f"golden/{name}", "now")), pytrace=False)

    return compare


@pytest.fixture(scope="session")
def stored_payload() -> dict[str, Any]:
    """Return what a worker sent for one replicate."""
    return load_record((DATA / f"{STORED_MODEL}-siso.msgpack").read_bytes(), "llama")


@pytest.fixture(scope="session")
def stored_record(stored_payload: dict[str, Any]) -> EngineRecord:
    """Return the engine's record of that replicate."""
    return EngineRecord.from_plain(stored_payload["engine"])


@pytest.fixture(scope="session")
def requires_ebpf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the helper of the eBPF recorder, or skip with the one thing that is missing."""
    cache_dir = tmp_path_factory.getbasetemp() / "engine-cache"
    if obstacle := ebpf_obstacle(cache_dir):
        pytest.skip(f"eBPF: {obstacle}")
    return find_helper(cache_dir)


@pytest.fixture(scope="session")
def requires_board() -> None:
    """Skip, with the one thing that is missing, where there can be no test board in namespaces of its own."""
    if obstacle := board_obstacle():
        pytest.skip(f"boards: {obstacle}")


@pytest.fixture
def start_board(requires_board: None) -> Iterator[Callable[..., NamespaceBoard]]:
    """Start test boards with options of `NamespaceBoard`; they end with the test."""
    with ExitStack() as boards:

        def start(**options: Any) -> NamespaceBoard:
            board = NamespaceBoard(**options)
            boards.callback(board.stop)
            return board

        yield start


@pytest.fixture
def fresh_board(start_board: Callable[..., NamespaceBoard]) -> NamespaceBoard:
    """Return a test board of this test's own."""
    return start_board()


@pytest.fixture(scope="session")
def board(requires_board: None) -> Iterator[NamespaceBoard]:
    """Give the test board that the tests share; a test leaves it as it finds it."""
    board = NamespaceBoard()
    try:
        yield board
    finally:
        board.stop()


@pytest.fixture(scope="session")
def own_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of this machine's own worker and llama.cpp."""
    return make_own_bundle(tmp_path_factory.mktemp("bundles") / "own", tmp_path_factory.getbasetemp() / "engine-cache")


@pytest.fixture(scope="session")
def requires_loopback_board() -> None:
    """Skip, with the one thing that is missing, where there can be no sshd on a loopback port."""
    if obstacle := loopback_obstacle():
        pytest.skip(f"boards: {obstacle}")


@pytest.fixture
def loopback_board(requires_loopback_board: None) -> Iterator[LoopbackBoard]:
    """Give an sshd on a loopback port, which runs as whoever runs the tests."""
    board = LoopbackBoard()
    try:
        yield board
    finally:
        board.stop()


@pytest.fixture(params=linked_params())
def linked_board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkedBoard]:
    """Give a board at the end of each kind of link in turn."""
    if request.param == "ssh":
        request.getfixturevalue("requires_loopback_board")
    with made_linked_board(request.param, tmp_path_factory.mktemp("board") / "there") as board:
        yield board


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which golden files are written."""
    parser.addoption("--update-golden", action="store_true", help="write tests/data/golden instead of comparing to it")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of the suite's own tests."""
    config.addinivalue_line("markers", f"{_EBPF}: traces a process with eBPF (set by the fixture requires_ebpf)")
    config.addinivalue_line("markers", f"{_BOARDS}: runs on a test board (set by the fixtures of boards)")
    config.addinivalue_line("markers", "measures: times something, so that nothing may run beside it")
    config.addinivalue_line("markers", "long: takes so long that 'make test-long' runs it")
    config.addinivalue_line("markers", "long_but_first: the same, but for its first set of parameters")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need eBPF or a board, so that their reports can be counted, and those that are long."""
    begun = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if function in begun and item.get_closest_marker("long_but_first"):
            item.add_marker("long")
        begun.add(function)
        fixtures = set(getattr(item, "fixturenames", ()))
        if "requires_ebpf" in fixtures:
            item.add_marker(_EBPF)
        if fixtures & _BOARD_FIXTURES:
            item.add_marker(_BOARDS)
        if fixtures & _LONG_FIXTURES:
            item.add_marker("long")


def pytest_collection_finish() -> None:
    """Keep the tests themselves out of collections, of which each run of pytest within a test asks for several."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Keep what a file has left out of collections as well, and let it leave no process."""
    if nextitem is None or nextitem.path != item.path:
        gc.freeze()
        end(left := left_by_tests(item.nodeid.partition("::")[0]))
        assert not left, f"tests have left processes: {left}"


def pytest_sessionfinish() -> None:
    """Let the interpreter's end find what was kept out: libraries tell what was never freed."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests traced with eBPF, ran on a board or measured, and how many did not."""
    for marker, what in _COUNTED.items():
        n_skipped = _count(terminalreporter, marker, "skipped")
        n_ran = _count(terminalreporter, marker, "passed", "failed", "error")
        if n_ran or n_skipped:
            terminalreporter.write_line(f"{n_ran} tests {what}, {n_skipped} that would have were skipped")


def _count(terminalreporter: pytest.TerminalReporter, marker: str, *outcomes: str) -> int:
    reports = [each for outcome in outcomes for each in terminalreporter.stats.get(outcome, [])]
    return sum(isinstance(each, pytest.TestReport) and marker in each.keywords for each in reports)
