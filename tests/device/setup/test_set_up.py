"""The desk's end of the installer: events, silence, and how it ends."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.setup.set_up import converse
from perfsuite.device.target.opening import open_target
from perfsuite.errors import LinkError


def test_events_are_read_among_other_lines() -> None:
    """What a login or a compiler prints beside them is passed over."""
    script = "echo hello; printf '{\"step\"'; sleep 0.1; echo ': 1}'; echo '[1]'; echo '{\"line\": 2}'; exit 1"
    heard = list[dict[str, int]]()
    assert converse(open_target(Reach()), ["sh", "-c", script], heard.append) is None
    assert heard == [{"step": 1}, {"line": 2}]


def test_a_program_that_is_killed_is_a_lost_link() -> None:
    """Only its own ends, 0 and 1, are ends of a conversation; of silence the line says how long it was."""
    with pytest.raises(LinkError, match=r"local: the shell was ended from outside \(word\)"):
        converse(open_target(Reach()), ["sh", "-c", "echo word >&2; kill -9 $$"], print)
    with pytest.raises(LinkError, match="heard nothing for 0 s"):
        converse(open_target(Reach()), ["cat"], print, silence_limit_s=0.3)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_whoever_stops_listening_ends_the_program(tmp_path: Path, is_interrupted: bool) -> None:
    """An answer that is enough, and Ctrl-C, close the program's input, by which it ends."""
    script = f"echo '{{\"done\": 1}}'; cat >/dev/null; touch '{tmp_path}/ended'"

    def hear(event: dict[str, int]) -> int:
        if is_interrupted:
            raise KeyboardInterrupt
        return event["done"]

    with pytest.raises(KeyboardInterrupt) if is_interrupted else nullcontext():
        assert converse(open_target(Reach()), ["sh", "-c", script], hear) == 1
    assert (tmp_path / "ended").exists()
