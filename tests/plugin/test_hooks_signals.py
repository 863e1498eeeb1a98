"""A run that is asked to end keeps what it has measured, and gives the device back."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.end_requests import END_REQUESTS
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan, Plan
from perfsuite.records.run_file import read_run_file
from tests.fake_device import FakeDevice

from ..conftest import STORED_MODEL

_CHOOSE = "perfsuite.plugin.board_options.choose_board"
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


#: A conftest.py that tells, in the end, which signals each thread but the main one takes not.
_THREADS = """
import sys
from pathlib import Path

def pytest_sessionfinish():
    assert "numpy" in sys.modules
    for each in sorted(Path("/proc/self/task").iterdir(), key=lambda each: int(each.name))[1:]:
        print([line for line in (each / "status").read_text().splitlines() if line.startswith("SigBlk")][0])
"""


class SignalledBoard(LocalBoard):
    """This machine; in the third run of llama.cpp, and while it is given back, somebody sends a signal."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(cache_dir=Path())
        self.number = number
        self.events: list[str] = []
        self._n_runs = 0

    def close(self) -> None:
        super().close()
        if not self.events:
            self._send()
            self.events.append("restored")

    def run(self, plan: Plan, *, limit_s: float = WORKER_LIMIT_S, **how: Any) -> dict[str, Any]:
        self._n_runs += isinstance(plan, LlamaPlan)
        if self._n_runs == 3:
            self._send()
            self.events.append("went on")
        return super().run(plan, limit_s=limit_s, **how)

    def _send(self) -> None:
        assert signal.getsignal(self.number) is not signal.SIG_DFL  # it would end the tests
        os.kill(os.getpid(), self.number)


def test_no_thread_of_a_library_takes_requests_to_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What NumPy starts when the plugin is loaded leaves them to the main thread, which may be waiting."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    pytester.makeconftest(_THREADS)
    pytester.makepyfile("def test_nothing(): pass")
    told = pytester.runpytest_subprocess("-s", "--device=host", f"--model={STORED_MODEL}", "--collect-only").outlines
    masks = [int(line.rpartition("SigBlk:")[2], 16) for line in told if "SigBlk:" in line]
    assert masks, "NumPy started no thread"
    assert all(mask >> (number - 1) & 1 for mask in masks for number in END_REQUESTS)


@pytest.mark.parametrize("number", END_REQUESTS)
def test_a_signal_ends_a_run_as_an_interrupt_does(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """What was measured before is judged, the device is restored though one more comes, and the code is pytest's 2."""
    board = SignalledBoard(number)
    monkeypatch.setattr(_CHOOSE, lambda *_, **__: board)
    monkeypatch.setattr("perfsuite.device.end_requests._SAME_REQUEST_S", math.inf)  # a second one would end the tests
    own = ("--perf-dir=run", "-p", "no:cacheprovider", "-o", "perf_session_spread=0.01", "-k", "test_phase")
    result = pytester.runpytest_inprocess("--device=host", f"--model={STORED_MODEL}", *own, no_reraise_ctrlc=True)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert board.events == ["restored"]
    result.stdout.fnmatch_lines([f"*KeyboardInterrupt: {number.name}*"])
    found = read_run_file(pytester.path / "run")
    assert found.is_interrupted
    assert [len(each.samples_ns) for each in found.judgements if each.samples_ns] != []
    assert [signal.getsignal(each) for each in SIGNALS] == [signal.SIG_DFL] * 2


def test_a_run_that_measures_nothing_leaves_signals_alone(
    pytester: pytest.Pytester, fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a list of the cases nor a run without a device hears signals."""
    heard: list[object] = []
    monkeypatch.setattr("perfsuite.plugin.hooks.requests_heard", heard.append)
    pytester.runpytest_inprocess("--device=host", f"--model={STORED_MODEL}", "--collect-only", "-q")
    pytester.makepyfile("def test_x(): pass")
    pytester.runpytest_inprocess()
    assert not heard
