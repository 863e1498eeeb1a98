"""Subscribing to a real worker, and to sockets that do not behave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.live import Delivery, deliveries, run_live, subscribe
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Span
from perfsuite.records.live import LiveEnd, LiveLoss, LivePhase, LiveRecord, LiveToken, to_line

from .conftest import Child

LIMIT_S = 120.0

HERE = LocalBoard(cache_dir=Path("nowhere"))


END = LiveEnd(end_ns=9, is_complete=True, n_phases=0, n_tokens=0, n_kernels=0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "live.sock"


def live_phase(span: Span) -> LivePhase:
    return LivePhase(**{**asdict(span), "phase": span.phase.value})


def phases(records: list[LiveRecord]) -> list[LivePhase]:
    return [record for record in records if isinstance(record, LivePhase)]


@contextmanager
def served(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join()


def test_every_phase_of_a_run_is_delivered_live(small_plan: LlamaPlan) -> None:
    plan = replace(small_plan, n_gen=48, n_repetitions=2)
    seen: list[Delivery] = []
    record = EngineRecord.from_plain(run_live(plan, seen.append, HERE, limit_s=LIMIT_S)["engine"])
    records = [delivery.record for delivery in seen]
    assert phases(records) == [live_phase(span) for span in record.spans]
    assert not any(isinstance(each, LiveLoss) for each in records)
    tokens = [each for each in seen if isinstance(each.record, LiveToken)]
    assert [(each.record.repetition, each.record.step) for each in tokens if isinstance(each.record, LiveToken)] == [
        (repetition, step) for repetition in range(2) for step in range(48)
    ]
    assert tokens[0].arrival_ns < record.spans[-1].end_ns
    assert records[-1] == replace(
        END, end_ns=getattr(records[-1], "end_ns", 0), n_phases=len(record.spans), n_tokens=96
    )


@pytest.mark.parametrize("how", ["none", "slow", "killed", "two"])
def test_a_run_ends_the_same_whoever_listens(how: str, small_plan: LlamaPlan, path: Path) -> None:
    """Nobody, somebody who does not read, who dies early, or two at once: the record is whole, and so is what came."""
    plan = replace(small_plan, n_gen=64, live_socket=str(path))
    seen: list[LiveRecord] = []
    twin: list[LiveRecord] = []

    def listen(into: list[LiveRecord], n_most: int | None = None) -> threading.Thread:
        thread = threading.Thread(target=lambda: into.extend(islice(subscribe(path, limit_s=LIMIT_S), n_most)))
        thread.start()
        return thread

    listeners = {"none": (), "slow": ((seen, None),), "killed": ((seen, 1),), "two": ((seen, None), (twin, None))}[how]
    threads = [listen(into, n_most) for into, n_most in listeners]
    payload = HERE.run(plan, limit_s=LIMIT_S)
    for thread in threads:
        thread.join()
    spans = [live_phase(span) for span in EngineRecord.from_plain(payload["engine"]).spans]
    assert len(spans) == 1 + 4 * 65 + 1
    assert phases(seen) == (spans if how in ("slow", "two") else [] if how == "none" else spans[:1])
    if how == "two":
        assert phases(twin) == spans
    assert not path.exists()


def test_a_killed_run_is_told(path: Path, small_plan: LlamaPlan) -> None:
    seen: list[LiveRecord] = []
    thread = threading.Thread(target=lambda: seen.extend(subscribe(path, limit_s=LIMIT_S)))
    thread.start()
    with pytest.raises(MeasurementError, match="was stopped"):
        HERE.run(replace(small_plan, live_socket=str(path), n_gen=10**6), limit_s=3.0)
    thread.join()
    assert isinstance(seen[-1], LiveEnd)
    assert not seen[-1].is_complete


def test_a_worker_that_cannot_start_says_why(small_plan: LlamaPlan, tmp_path: Path) -> None:
    """The worker's own reason is reported, not that its stream broke off."""
    broken = replace(small_plan, gguf_path=str(tmp_path / "none.gguf"))
    with pytest.raises(MeasurementError, match=r"none\.gguf: llama\.cpp cannot load it"):
        run_live(broken, lambda delivery: None, HERE, limit_s=LIMIT_S)


def test_a_worker_that_never_listens_is_not_waited_for(child: Child, small_plan: LlamaPlan) -> None:
    child("exit 0")
    with pytest.raises(MeasurementError, match="wrote no record"):
        run_live(small_plan, lambda delivery: None, HERE, limit_s=LIMIT_S)


def test_what_the_consumer_raises_ends_the_run(small_plan: LlamaPlan) -> None:
    def refuse(delivery: Delivery) -> None:
        raise BrokenPipeError("the reader has gone")

    with pytest.raises(BrokenPipeError, match="the reader has gone"):
        run_live(replace(small_plan, n_gen=10**5), refuse, HERE, limit_s=LIMIT_S)


def test_delays_are_of_what_ended_after_the_subscription(path: Path) -> None:
    token = LiveToken(repetition=0, step=0, token=0, latency_ns=1, end_ns=1, tokens_per_s=1.0)
    late = replace(token, end_ns=2**62)
    lines = [to_line(each) for each in (token, late, LiveLoss(where="queue", n_records=1), END)]
    with served(path, lambda connection: connection.sendall(("\n".join(lines) + "\n").encode())):
        found = list(deliveries(path, limit_s=LIMIT_S))
    assert [each.delay_ns for each in found] == [None, found[1].arrival_ns - 2**62, None, None]


def test_nobody_and_silence_are_not_waited_for_beyond_the_limit(path: Path) -> None:
    with pytest.raises(MeasurementError, match="cannot be subscribed to"):
        next(subscribe(path.with_name("x" * 200), limit_s=LIMIT_S))
    with pytest.raises(MeasurementError, match="nobody offers records there"):
        next(subscribe(path, limit_s=0.05))
    said_enough = threading.Event()
    with served(path, lambda connection: said_enough.wait(LIMIT_S) and None):
        with pytest.raises(MeasurementError, match=r"no record for 0\.05 s"):
            next(subscribe(path, limit_s=0.05))
        said_enough.set()
    with pytest.raises(MeasurementError, match="nobody offers records there"):
        next(subscribe(path, limit_s=0.05))
