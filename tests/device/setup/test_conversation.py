"""The desk's end of the installer: events, silence, and how it ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.setup.conversation import converse
from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError


def test_events_are_read_among_other_lines() -> None:
    """What a login or a compiler prints beside them is passed over."""
    script = "echo hello; echo '{\"step\": 1}'; echo '[1]'; echo '{\"done\": 2}'"
    assert list(converse(open_target(Reach()), ["sh", "-c", script])) == [{"step": 1}, {"done": 2}]


def test_silence_is_a_lost_link(tmp_path: Path) -> None:
    """A program that says nothing is ended, and the line says for how long nothing was heard."""
    with pytest.raises(LinkError, match="heard nothing for 0 s"):
        list(converse(open_target(Reach()), ["cat"], silence_limit_s=0.3))


def test_whoever_stops_listening_ends_the_program(tmp_path: Path) -> None:
    """Ctrl-C closes the program's input, by which it ends."""
    mark = tmp_path / "ended"
    script = f"echo '{{\"step\": 1}}'; cat >/dev/null; touch '{mark}'"
    events = converse(open_target(Reach()), ["sh", "-c", script])
    assert next(events) == {"step": 1}
    events.close()
    deadline = time.monotonic() + 10
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert mark.exists()
