"""OpenCL traces made up command by command, as objects and as the bytes of the layer's log."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perfsuite.records.opencl_commands import (
    COMMAND_DTYPE,
    ClockPoint,
    ClockSource,
    Commands,
    CommandType,
    OpenClTrace,
    TracedDevice,
    TracedQueue,
)

#: The device's time at a host time.
Clock = Callable[[int], int]

DEVICE = TracedDevice(platform_name="A platform", device_name="A device", driver_version="1.2")

#: Host time at which made-up traces begin: a machine that has been up for two days.
EPOCH_NS = 172_800_000_000_000


def queue(number: int = 1, *, device: int = 0, is_out_of_order: bool = False) -> TracedQueue:
    return TracedQueue(queue=number, context=1, device=device, is_out_of_order=is_out_of_order, caller_profiles=False)


def command(
    sequence: int,
    host_start_ns: int,
    times: Sequence[int],
    *,
    clock: Clock = int,
    call_ns: int = 1000,
    **fields: Any,
) -> Commands:
    """Return one command; `times` are the host times at which it was queued, submitted, started and ended."""
    made = np.zeros(1, COMMAND_DTYPE)
    made["sequence"], made["host_start_ns"], made["host_end_ns"] = sequence, host_start_ns, host_start_ns + call_ns
    for field, time_ns in zip(("queued_ns", "submit_ns", "start_ns", "end_ns"), times, strict=True):
        made[field] = clock(time_ns)
    made["queue"], made["name"], made["type"], made["work_dim"] = 1, 1, CommandType.KERNEL, 1
    made["global"] = 1
    for field, value in fields.items():
        made[field] = value
    return made


def trace(
    commands: Iterable[Commands],
    *,
    names: Sequence[str] = ("alpha", "beta", "gamma"),
    queues: Sequence[TracedQueue] = (queue(),),
    devices: Sequence[TracedDevice] = (DEVICE,),
    clock_points: Sequence[ClockPoint] = (),
    n_lost: int = 0,
    n_unfinished: int | None = 0,
    replayed: Iterable[Commands] = (),
) -> OpenClTrace:
    """Gather a trace; the ids of names count from 1."""
    return OpenClTrace(
        pid=4711,
        commands=np.concatenate([np.empty(0, COMMAND_DTYPE), *commands]),
        replayed=np.concatenate([np.empty(0, COMMAND_DTYPE), *replayed]),
        names=("", *names),
        devices=tuple(devices),
        queues=tuple(queues),
        clock_points=tuple(clock_points),
        n_lost=n_lost,
        n_unfinished=n_unfinished,
    )


def timer_point(
    host_ns: int, clock: Clock, *, before_ns: int = 500, after_ns: int = 500, device: int = 0
) -> ClockPoint:
    return ClockPoint(
        device=device,
        source=ClockSource.TIMER,
        device_ns=clock(host_ns),
        host_before_ns=host_ns - before_ns,
        host_after_ns=host_ns + after_ns,
    )


def drifting(*, offset_ns: int = 0, ppm: float = 0.0) -> Clock:
    """Return a clock that is `offset_ns` ahead of the host's at the epoch, and loses `ppm` millionths on it."""

    def clock(host_ns: int) -> int:
        return host_ns + offset_ns - round((host_ns - EPOCH_NS) * ppm * 1e-6)

    return clock


def steady_commands(n: int, clock: Clock, *, period_ns: int = 100_000, call_ns: int = 2000) -> list[Commands]:
    """Return launches at regular times, each queued in the middle of its call and over before the next."""
    return [
        command(
            i,
            at_ns := EPOCH_NS + i * period_ns,
            [at_ns + call_ns // 2, at_ns + call_ns, at_ns + period_ns // 4, at_ns + period_ns // 2],
            clock=clock,
            call_ns=call_ns,
        )
        for i in range(n)
    ]


def log_header(pid: int = 4711) -> bytes:
    return struct.pack("<8sIIq", b"PSCLLOG1", 24, pid, EPOCH_NS)


def record(kind: int, content: bytes) -> bytes:
    """Return a record with its prefix, filled up to a multiple of 8 bytes."""
    padded = content + bytes(-len(content) % 8)
    return struct.pack("<II", kind, 8 + len(padded)) + padded


def text_record(kind: int, number: int, text: str) -> bytes:
    """Return the name of a kernel (kind 1) or of a device (kind 2)."""
    encoded = text.encode()
    return record(kind, struct.pack("<II", number, len(encoded)) + encoded)


def command_records(commands: Commands) -> bytes:
    prefix = struct.pack("<II", 5, 8 + COMMAND_DTYPE.itemsize)
    return b"".join(prefix + each.tobytes() for each in commands)


def end_record(n_recorded: int, n_lost: int = 0, n_unfinished: int = 0) -> bytes:
    """Return the end of a process that ended in order."""
    n_commands = n_recorded + n_lost + n_unfinished
    return record(7, struct.pack("<QQQQq", n_commands, n_recorded, n_lost, n_unfinished, 2 * EPOCH_NS))


def log_bytes(source: OpenClTrace, *, is_ended: bool = True) -> bytes:
    """Return a trace as the layer would have written it."""
    devices = ["\t".join((each.platform_name, each.device_name, each.driver_version)) for each in source.devices]
    parts = [log_header(source.pid)]
    parts += [text_record(2, number, text) for number, text in enumerate(devices, 1)]
    parts += [
        record(3, struct.pack("<IIII", each.queue, each.context, each.device + 1, _flags(each)))
        for each in source.queues
    ]
    parts += [text_record(1, number, name) for number, name in enumerate(source.names[1:], 1)]
    parts += [record(4, _clock_content(each)) for each in source.clock_points]
    parts += [command_records(source.commands), command_records(source.replayed)]
    if source.n_lost:
        parts.append(record(6, struct.pack("<IIQ", 1, 0, source.n_lost)))
    if is_ended:
        parts.append(end_record(source.commands.size, source.n_lost, source.n_unfinished or 0))
    return b"".join(parts)


def write_log(path: Path, source: OpenClTrace, *, is_ended: bool = True) -> Path:
    path.write_bytes(log_bytes(source, is_ended=is_ended))
    return path


def _flags(each: TracedQueue) -> int:
    return each.is_out_of_order * 1 + each.caller_profiles * 2


def _clock_content(point: ClockPoint) -> bytes:
    times = (point.device_ns, point.host_before_ns, point.host_after_ns)
    return struct.pack("<IIqqq", point.device + 1, point.source, *times)
