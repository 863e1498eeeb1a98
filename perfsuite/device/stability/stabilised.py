"""Brings a device into the state that a run asks for, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.device.conditions import Conditions
from perfsuite.device.stability.battery import check_battery
from perfsuite.device.stability.cooling import wait_until_cool
from perfsuite.device.stability.governing import governed
from perfsuite.device.stability.restore_file import restore_leftovers


@dataclass(slots=True, kw_only=True)
class Stability:
    """What is to be told of the device's state; both grow until the context has ended."""

    #: Lines for the run: what was restored, what could not be set, what is not known.
    notes: list[str] = field(default_factory=list)
    #: Reasons why what is measured is INVALID; none where the device is as it was asked to be.
    problems: list[str] = field(default_factory=list)


@contextmanager
def stabilised(
    conditions: Conditions,
    *,
    folder: Path,
    root: Path = Path("/"),
    is_nested: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Stability]:
    """Hold a device as the conditions ask: leftovers restored, governors set, cool enough to begin, battery charged.

    What was set is restored when the context ends, by an exception too. A signal ends it in that way only where its
    handler raises: Python's own does for SIGINT; whoever holds the context has to install one that raises (such as
    ``SystemExit(128 + number)``) for SIGTERM and SIGHUP, in the main thread, before entering. After SIGKILL the next
    run restores, from ``restore.json`` in the folder. Enter it while the device's lock is held.
    Where another process of the same run holds that (`is_nested`), governors that it may have set are left as they are.

    Raises DeviceError: a process that has changed the device still runs.
    """
    stability = Stability()
    stability.notes.extend(restore_leftovers(folder, root, is_nested=is_nested))
    with governed(conditions, stability.notes, folder=folder, root=root):
        cooled = wait_until_cool(conditions, root=root, clock=clock, sleep=sleep)
        battery_note, battery_problem = check_battery(conditions, root)
        stability.notes.extend(filter(None, (*cooled.notes, battery_note)))
        stability.problems.extend(filter(None, (cooled.problem, battery_problem)))
        yield stability
