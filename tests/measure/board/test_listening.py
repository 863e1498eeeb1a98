"""Whatever the agent hears last, it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from perfsuite.measure.board import ending as endings
from perfsuite.measure.board.ending import Ending
from perfsuite.measure.board.frames import packed_frame
from perfsuite.measure.board.listening import Listener
from perfsuite.measure.board.speaking import Speaker


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Return what a listener reads from, and what the desk writes to; no thread of the tests is ended."""
    monkeypatch.setattr(endings, "_signal_main_thread", lambda: None)
    reading, writing = os.pipe()
    yield reading, writing
    for each in (reading, writing):
        os.close(each)


def listener(reading: int, ending: Ending) -> Listener:
    """Return a listener that never has to speak."""
    return Listener(reading, Speaker(-1, lambda: False), ending)


def test_requests_are_taken_until_the_goodbye(pipe: tuple[int, int]) -> None:
    """They stand in their order, and a desk that says goodbye is no fault."""
    reading, writing = pipe
    ending = Ending()
    hears = listener(reading, ending)
    for number, kind in enumerate(("hello", "run")):
        os.write(writing, packed_frame({"kind": kind, "id": number, "arguments": {}}))
    os.write(writing, packed_frame({"kind": "bye"}))
    hears.listen()
    assert [hears.requests.get()["kind"] for _ in range(2)] == ["hello", "run"]
    assert (ending.is_over.is_set(), ending.reason) == (True, "")


def test_what_nobody_foresaw_ends_the_agent(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the thread that listens nobody would notice that the desk is gone."""
    reading, writing = pipe
    monkeypatch.setattr(Listener, "_take", lambda *_: 1 // 0)
    ending = Ending()
    os.write(writing, packed_frame({"kind": "ping"}))
    listener(reading, ending).listen()
    assert ending.is_over.is_set()
    assert ending.reason == "what the desk said cannot be taken (ZeroDivisionError: integer division or modulo by zero)"
