"""Messages arrive whole, however the stream cuts them, and what is none is an error."""

from __future__ import annotations

import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import DeviceError, LinkError, LockedError, MeasurementError, PerfsuiteError
from perfsuite.measure.board.frames import (
    Frames,
    StuckError,
    is_writable,
    packed_frame,
    raised_again,
    read_chunk,
    write_frame,
)


@pytest.mark.parametrize("kind", [DeviceError, LinkError, LockedError, PerfsuiteError, MeasurementError])
def test_an_error_arrives_as_one_of_the_suite(kind: type[PerfsuiteError]) -> None:
    again = raised_again({"class": kind.__name__, "text": "a b"})
    assert (type(again), str(again)) == (kind, "a b")


def test_of_an_error_with_more_than_a_text_the_text_stays() -> None:
    assert str(raised_again({"class": "ShapeCrashError", "text": "gemm/x: killed"})) == "gemm/x: killed"


@pytest.mark.parametrize("plain", [None, "x", {}, {"class": "os", "text": "x"}, {"class": "annotations", "text": "x"}])
def test_an_error_that_is_not_known_is_one_of_measurement(plain: object) -> None:
    """Whatever comes is an error in one line, and nothing that the text names is run."""
    assert type(raised_again(plain)) is MeasurementError


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"kind": st.text(), "value": st.recursive(st.integers(-(2**63), 2**63) | st.text(), st.lists)}
    )
)


@pytest.mark.long
@given(messages=MESSAGES, cuts=st.lists(st.integers(1, 40), min_size=1))
def test_messages_arrive_in_whatever_pieces(messages: list[dict[str, object]], cuts: list[int]) -> None:
    stream = b"".join(map(packed_frame, messages))
    found, taken, at, turn = [], Frames(), 0, 0
    while at < len(stream):
        end = at + cuts[turn % len(cuts)]
        found += list(taken.messages(stream[at:end]))
        at, turn = end, turn + 1
    assert found == messages
    assert not taken.is_cut


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\0\0\0\x65", "101 bytes was announced .limit 100.: garbage"),
        (b"\0\0\0\1\xc1", "a message cannot be read .*: garbage"),
        (b"\0\0\0\1\x80", "a message is a dict without a kind: garbage"),
    ],
)
def test_garbage_is_told(content: bytes, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        list(Frames(limit_bytes=100).messages(content))


def test_a_message_that_nobody_takes_is_given_up() -> None:
    """A full pipe holds a writer only until all is over."""
    reading, writing = os.pipe()
    over = threading.Event()
    threading.Timer(0.2, over.set).start()
    since = time.monotonic()
    with pytest.raises(StuckError, match=r"of 300010 bytes of a message were not taken"):
        write_frame(writing, bytes(300_010), is_over=over.is_set)
    assert 0.1 < time.monotonic() - since < 5.0
    assert not is_writable(writing)
    os.close(reading)
    assert is_writable(writing)
    with pytest.raises(BrokenPipeError):
        write_frame(writing, b"x", is_over=lambda: True)
    os.close(writing)


def test_a_message_that_is_taken_slowly_arrives_whole() -> None:
    reading, writing = os.pipe()
    content = os.urandom(500_000)
    writer = threading.Thread(target=write_frame, args=(writing, content), kwargs={"is_over": lambda: False})
    writer.start()
    taken = b""
    while len(taken) < len(content):
        taken += read_chunk(reading)
    writer.join()
    assert taken == content
    os.close(reading)
    os.close(writing)
