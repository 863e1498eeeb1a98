"""Notes what the machine was like around each replicate of a group."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.watching import Watched
from perfsuite.measure.contention import Contention
from perfsuite.records.observation import MachineState


@dataclass(kw_only=True)
class StateLog:
    """The states of one group: what is read before a replicate starts, and what was sampled while it ran."""

    group: str
    #: Is asked for its state.
    board: Board
    #: When the run began, by `time.monotonic`.
    began_s: float
    states: list[MachineState] = field(default_factory=list)
    #: The machine before the first replicate; nothing where there was none.
    started_with: Mapping[str, float | None] = field(default_factory=dict)
    _before: Mapping[str, float | None] = field(default_factory=dict)
    _at_s: float = 0.0

    def before(self) -> None:
        """Read the machine: a replicate is about to start."""
        self._at_s = round(time.monotonic() - self.began_s, 3)
        self._before = self.board.covariates()
        self.started_with = self.started_with or self._before

    def after(self, payload: Mapping[str, Any], *, is_valid: bool) -> None:
        """Note a replicate that has ended: the competition that it met, and what the samples beside it saw."""
        contention = Contention.from_plain(payload["contention"])
        seen = Watched.of(payload)
        self.states.append(
            MachineState(
                group=self.group,
                at_s=self._at_s,
                is_valid=is_valid,
                load_average=self._before.get("load_average"),
                cpu_mhz=self._before.get("cpu_mhz"),
                temperature_celsius=self._before.get("temperature_celsius"),
                throttled=_as_bool(self._before.get("throttled")) if seen.was_throttled is None else seen.was_throttled,
                battery_ratio=self._before.get("battery_ratio"),
                power_watts=self._before.get("power_watts"),
                waiting_ratio=_rounded(contention.waiting_ratio),
                steal_ratio=_rounded(contention.steal_ratio),
                least_cpu_mhz=seen.least_cpu_mhz,
                most_cpu_mhz=seen.most_cpu_mhz,
                most_celsius=seen.most_celsius,
            )
        )


def _as_bool(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)
