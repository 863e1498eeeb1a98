"""What a keeper that was killed left running."""

from __future__ import annotations

import signal
import subprocess

import pytest

from perfsuite.nightly.leftovers import _PATIENCE_S, end_session

LIMIT_S = 30


def test_all_of_a_session_is_ended_in_whatever_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """What heeds no request is killed; processes of other sessions are left alone."""
    patience = [(number, 0.3) for number, _ in _PATIENCE_S]
    monkeypatch.setattr("perfsuite.nightly.leftovers._PATIENCE_S", patience)
    shell = "trap '' INT TERM; set -m; sleep 60 & sleep 60 & echo on; wait"
    with (
        subprocess.Popen(["sleep", "60"], start_new_session=True) as other,
        subprocess.Popen(["bash", "-c", shell], stdout=subprocess.PIPE, start_new_session=True) as first,
    ):
        assert first.stdout is not None
        assert first.stdout.readline() == b"on\n"
        assert end_session(first.pid) == 3
        assert first.wait(LIMIT_S) == -signal.SIGKILL
        assert first.stdout.read() == b""
        assert other.poll() is None
        other.kill()


def test_a_session_that_is_over_has_nothing_left() -> None:
    """Nothing is signalled, and nothing is waited for."""
    with subprocess.Popen(["true"], start_new_session=True) as gone:
        gone.wait()
        assert end_session(gone.pid) == 0
