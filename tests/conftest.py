"""Stored records, so that nothing here is measured; eBPF and test boards, where there can be any; what must be told."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper
from perfsuite.measure.plan import load_record
from perfsuite.records.events import EngineRecord

from .board_loopback import LoopbackBoard, loopback_obstacle
from .board_namespaces import NamespaceBoard, board_obstacle

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a background job's; what is started here would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(__file__).parent / "data"

#: The run that tests/data holds: 64 tokens of prompt, 24 generated, two layers of SmolLM2-135M in Q8_0, two threads.
STORED_MODEL = "smollm2-135m-l2-q8_0"

#: The marker of tests that trace with eBPF.
_EBPF = "traces_with_ebpf"

#: The marker of tests that run on a test board, and the fixtures that mean it.
_BOARDS = "runs_on_a_board"
_BOARD_FIXTURES = {"requires_board", "requires_loopback_board"}

#: The tests that are told at the end, by their marker, since their absence must not pass in silence: what they do.
_TOLD = {
    _EBPF: ("eBPF", "traced with eBPF"),
    _BOARDS: ("boards", "ran on a test board"),
    "measures_for_docs": ("documentation", "measured what a page of the documentation shows"),
}


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Let runs within the tests lock a folder of their own, so that they contend with no run on this machine."""
    folder = tmp_path_factory.mktemp("locks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFSUITE_LOCK_DIR", str(folder))
        yield folder


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
    """Give the test board that the tests share, with the suite; a test leaves it as it finds it."""
    board = NamespaceBoard()
    try:
        board.link_suite()
        yield board
    finally:
        board.stop()


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


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of the tests that are told at the end."""
    config.addinivalue_line("markers", f"{_EBPF}: traces a process with eBPF (set by the fixture requires_ebpf)")
    config.addinivalue_line("markers", f"{_BOARDS}: runs on a test board (set by the fixtures of boards)")
    config.addinivalue_line("markers", "measures_for_docs: runs commands of a page that measure this machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need eBPF or a board, so that their reports can be told apart."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "requires_ebpf" in fixtures:
            item.add_marker(_EBPF)
        if fixtures & _BOARD_FIXTURES:
            item.add_marker(_BOARDS)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Keep what a file has left out of collections: each run of pytest within a later test asks for several of them."""
    if nextitem is not None and nextitem.path != item.path:
        gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the interpreter's end find what was kept out: libraries tell what was never freed."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests traced with eBPF, ran on a board or measured for the documentation, which did not, and why."""
    for marker, (title, what) in _TOLD.items():
        _tell(terminalreporter, marker, title, what)


def _tell(terminalreporter: pytest.TerminalReporter, marker: str, title: str, what: str) -> None:
    outcomes = ("passed", "failed", "error")
    ran = [each for outcome in outcomes for each in _reports(terminalreporter, outcome, marker)]
    skipped = _reports(terminalreporter, "skipped", marker)
    if not ran and not skipped:
        return
    terminalreporter.section(title)
    terminalreporter.write_line(f"{len(ran)} tests {what}, {len(skipped)} were skipped")
    for report in ran:
        terminalreporter.write_line(f"  ran      {report.nodeid}")
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"  skipped  {report.nodeid}: {reason.removeprefix('Skipped: ')}")


def _reports(terminalreporter: pytest.TerminalReporter, outcome: str, marker: str) -> list[pytest.TestReport]:
    reports = terminalreporter.stats.get(outcome, [])
    return [each for each in reports if isinstance(each, pytest.TestReport) and marker in each.keywords]
