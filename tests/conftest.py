"""Stored records, so that nothing here is measured; and eBPF, where this machine allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper
from perfsuite.measure.plan import load_record
from perfsuite.records.events import EngineRecord

DATA = Path(__file__).parent / "data"

#: The run that tests/data holds: 64 tokens of prompt, 24 generated, two layers of SmolLM2-135M in Q8_0, two threads.
STORED_MODEL = "smollm2-135m-l2-q8_0"

#: The marker of tests that trace with eBPF.
_EBPF = "traces_with_ebpf"


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


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of the tests that trace with eBPF."""
    config.addinivalue_line("markers", f"{_EBPF}: traces a process with eBPF (set by the fixture requires_ebpf)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need eBPF, so that their reports can be told apart."""
    for item in items:
        if "requires_ebpf" in getattr(item, "fixturenames", ()):
            item.add_marker(_EBPF)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which tests traced with eBPF and which did not, and why: their absence must not pass in silence."""
    ran = [each for outcome in ("passed", "failed", "error") for each in _ebpf_reports(terminalreporter, outcome)]
    skipped = _ebpf_reports(terminalreporter, "skipped")
    if not ran and not skipped:
        return
    terminalreporter.section("eBPF")
    terminalreporter.write_line(f"{len(ran)} tests traced with eBPF, {len(skipped)} were skipped")
    for report in ran:
        terminalreporter.write_line(f"  ran      {report.nodeid}")
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line(f"  skipped  {report.nodeid}: {reason.removeprefix('Skipped: ')}")


def _ebpf_reports(terminalreporter: pytest.TerminalReporter, outcome: str) -> list[pytest.TestReport]:
    reports = terminalreporter.stats.get(outcome, [])
    return [each for each in reports if isinstance(each, pytest.TestReport) and _EBPF in each.keywords]
