"""The two pipes of a worker, with something else at their ends."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from perfsuite.measure.launch import kill_worker
from perfsuite.measure.plan import forecast_limit_s, limit_text
from perfsuite.measure.worker_lines import WorkerLines


@pytest.mark.parametrize(
    ("forecast_s", "limit_s"), [(None, 600.0), (0.0, 600.0), (0.1, 30.0), (1.5, 30.0), (60.0, 1200.0)]
)
def test_a_limit_follows_the_forecast(forecast_s: float | None, limit_s: float) -> None:
    assert forecast_limit_s(forecast_s) == limit_s


def test_a_limit_says_where_it_comes_from() -> None:
    assert limit_text(forecast_limit_s(2.0)) == "its limit is 40 s, 20 times its forecast and at least 30 s"
    assert limit_text(forecast_limit_s(None)) == "its limit is 600 s"


LIMIT_S = 60.0

Speaking = Callable[[str], WorkerLines]


@pytest.fixture
def speaking() -> Iterator[Speaking]:
    """Return how to start a shell script, which is stopped at the end."""
    started = []

    def start(script: str) -> WorkerLines:
        process = subprocess.Popen(
            ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return WorkerLines(process)

    yield start
    for process in started:
        kill_worker(process)


def soon() -> float:
    return time.monotonic() + LIMIT_S


def test_lines_come_one_by_one_and_then_none(speaking: Speaking) -> None:
    lines = speaking("printf 'one\\n\\ntwo '; sleep 0.05; printf 'pieces\\nlast \\377 words'")
    assert [lines.next_line(soon()) for _ in range(4)] == ["one", "", "two pieces", "last � words"]
    assert lines.next_line(soon()) is None
    assert lines.next_line(soon()) is None


def test_a_line_is_not_waited_for_beyond_the_deadline(speaking: Speaking) -> None:
    lines = speaking("read word; echo $word")
    with pytest.raises(TimeoutError):
        lines.next_line(time.monotonic() + 0.05)
    lines.send_line("late", soon())
    assert lines.next_line(soon()) == "late"


def test_a_line_longer_than_a_pipe_is_sent_whole(speaking: Speaking) -> None:
    lines = speaking("read word; echo ${#word}")
    lines.send_line("x" * 1_000_000, soon())
    assert lines.next_line(soon()) == "1000000"
    deaf = speaking("sleep 600")
    with pytest.raises(TimeoutError):
        deaf.send_line("x" * 1_000_000, time.monotonic() + 0.05)
