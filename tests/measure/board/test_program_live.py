"""Live records of a worker on a board."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.program_live import heard_there
from perfsuite.measure.live import Delivery, run_live
from perfsuite.measure.plan import LlamaPlan, dump_record
from perfsuite.records.events import EngineRecord
from perfsuite.records.live import LiveEnd, LiveKernel, LiveLoss, LivePhase, LiveToken

from ...records.test_opencl_log_tail import HEADER, NAME, clock, command, kernel, queue
from ...synthetic_opencl import record
from .conftest import LLAMA, BoardHome, Opened


def of_kind(heard: list[Delivery], kind: type) -> list[Any]:
    return [each.record for each in heard if isinstance(each.record, kind)]


def test_a_run_is_heard_as_it_is_recorded(
    bundled: BoardHome, opened: Opened, engine_cache: Path, small_plan: LlamaPlan
) -> None:
    """Each phase comes once, as the payload has it in the end, with its token; warm-ups do not, and the end is last."""
    bundled.bring_libraries(engine_cache)
    heard: list[Delivery] = []
    payload = run_live(replace(small_plan, recorder="none"), heard.append, opened(bundled))
    spans = EngineRecord.from_plain(payload["engine"]).spans
    phases = of_kind(heard, LivePhase)
    assert [(each.phase, each.start_ns, each.end_ns) for each in phases] == [
        (each.phase.value, each.start_ns, each.end_ns) for each in spans
    ]
    assert [each.step for each in of_kind(heard, LiveToken)] == list(range(small_plan.n_gen))
    end = heard[-1].record
    assert isinstance(end, LiveEnd)
    assert (end.is_complete, end.n_phases, end.n_tokens) == (True, len(phases), small_plan.n_gen)
    assert all(each.delay_ns > 0 for each in heard if each.delay_ns is not None)
    assert end.end_ns >= heard[-2].arrival_ns


def test_a_run_that_fails_ends_what_is_heard(bundled: BoardHome, opened: Opened) -> None:
    bundled.install("echo 'perfsuite-worker-failed: no memory'; exit 1")
    heard: list[Delivery] = []
    with pytest.raises(MeasurementError, match=r"^no memory$"):
        run_live(LLAMA, heard.append, opened(bundled))
    (end,) = of_kind(heard, LiveEnd)
    assert (end.is_complete, end.n_phases) == (False, 0)


def test_kernels_are_heard_while_the_layers_log_grows(bundled: BoardHome, opened: Opened, tmp_path: Path) -> None:
    """Its parts are read there as they come, cut anywhere, and understood here; the layer's losses are reported."""
    lost = record(6, struct.pack("<IIQ", 1, 0, 4))
    log = HEADER + NAME + queue(1, 1) + clock(1, 0, 0, 0) + command(1) + command(2) + lost
    for number, part in enumerate((log[:150], log[150:])):
        (tmp_path / f"part{number}").write_bytes(part)
    (bundled.folder / "record").write_bytes(dump_record("llama", {"engine": {}}))
    script = f'cat {tmp_path}/part$1 >> "$PERFSUITE_OPENCL_LOG/opencl-$$.log"'
    bundled.install(
        f'add() {{ {script}; }}; add 0; sleep 1.2; add 1; cp "$(dirname "$0")/record" "$3"',
    )
    heard: list[Delivery] = []
    run_live(LLAMA, heard.append, opened(bundled), extra_environment={"PERFSUITE_OPENCL_LOG": str(tmp_path)})
    assert of_kind(heard, LiveKernel) == [kernel(1), kernel(2)]
    assert of_kind(heard, LiveLoss) == [LiveLoss(where="opencl", n_records=4)]
    assert of_kind(heard, LiveEnd)[0].n_kernels == 2


def delivery(**changes: Any) -> dict[str, Any]:
    return {"at_ns": 100, "since_ns": 1, "spans": b"", "n_dropped": 0, "resumed_ns": 0, "log": b"", **changes}


def decode(repetition: int, end_ns: int) -> bytes:
    return struct.pack("=4i2q", 2, repetition, 7, 1, end_ns - 10, end_ns)


def test_what_did_not_come_is_counted(tmp_path: Path) -> None:
    """Phases that found the queue full are a loss; those that came are numbered by repetition, with their delays."""
    heard: list[Delivery] = []
    with heard_there(heard.append) as records:
        assert records is not None
        records.take(delivery(spans=decode(0, 40) + decode(0, 60)))
        records.take(delivery(spans=decode(1, 90), n_dropped=3))
        records.ended_ns = 200
    assert [each.step for each in of_kind(heard, LiveToken)] == [0, 1, 0]
    assert of_kind(heard, LiveLoss) == [LiveLoss(where="queue", n_records=3)]
    assert [each.delay_ns for each in heard if isinstance(each.record, LivePhase)] == [60, 40, 10]
    assert heard[-1].record == LiveEnd(end_ns=200, is_complete=True, n_phases=3, n_tokens=3, n_kernels=0)
