"""An agent's messages are whole, and none waits for ever."""

from __future__ import annotations

import os
import threading

import pytest

from perfsuite.measure.board.frames import Frames, StuckError, read_chunk
from perfsuite.measure.board.speaking import Speaker


def test_messages_and_signs_of_life_arrive() -> None:
    """Both are messages of the same stream."""
    reading, writing = os.pipe()
    speaker = Speaker(writing, lambda: False)
    speaker.say({"kind": "note"})
    speaker.pong()
    assert [each["kind"] for each in Frames().messages(read_chunk(reading))] == ["note", "pong"]
    os.close(reading)
    os.close(writing)
    assert not speaker.is_busy
    assert not speaker.is_cut


def test_nothing_follows_a_message_that_was_cut() -> None:
    """Once a part of a message was not taken, no sign of life is written behind it, and it is known."""
    reading, writing = os.pipe()
    over = threading.Event()
    over.set()
    speaker = Speaker(writing, over.is_set)
    with pytest.raises(StuckError):
        speaker.say({"kind": "x" * 200_000})
    assert speaker.is_cut
    assert not speaker.is_busy
    taken = read_chunk(reading)
    speaker.pong()
    os.close(writing)
    while chunk := read_chunk(reading):
        taken += chunk
    os.close(reading)
    assert list(Frames().messages(taken)) == []
    assert b"pong" not in taken
