"""Notes what the machine was like around each run of a group, and who else was at work there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.watching import Watched
from perfsuite.measure.competition import await_quiet
from perfsuite.measure.contention import Contention
from perfsuite.measure.schedule import Payload, Witness
from perfsuite.records.observation import MachineState


@dataclass(kw_only=True)
class GroupWitness(Witness):
    """Reads the machine before each run of a group, and keeps that with what was sampled while it ran."""

    config: RunConfig
    group: str
    #: What is measured, for the line that shows how far it is.
    what: str
    progress: ProgressLine
    #: Whether to wait for quiet on a machine that is busy from the beginning, where the run was asked to.
    awaits_quiet: bool = True
    states: list[MachineState] = field(default_factory=list)
    #: The machine before the first run; nothing where there was none.
    started_with: Mapping[str, float | None] = field(default_factory=dict)
    #: Who competed from the beginning, for whoever reads the run.
    notes: list[str] = field(default_factory=list)
    _before: Mapping[str, float | None] = field(default_factory=dict)
    _at_s: float = 0.0

    def before(self, n_valid: int) -> None:
        """Read the machine: a run is about to start."""
        self.progress.step(self.what)
        self._at_s = round(time.monotonic() - self.config.began_s, 3)
        self._before = self.config.board.covariates()
        self.started_with = self.started_with or self._before

    def after(self, payloads: Sequence[Payload], complaint: str | None) -> None:
        """Note a run that has ended: the competition that it met, and what the samples beside it saw."""
        payload = payloads[-1]
        contention = Contention.from_plain(payload["contention"])
        seen = Watched.of(payload)
        was_throttled = self._before.get("throttled")
        self.states.append(
            MachineState(
                group=self.group,
                at_s=self._at_s,
                is_valid=complaint is None,
                load_average=self._before.get("load_average"),
                cpu_mhz=self._before.get("cpu_mhz"),
                temperature_celsius=self._before.get("temperature_celsius"),
                throttled=_as_bool(was_throttled) if seen.was_throttled is None else seen.was_throttled,
                battery_ratio=self._before.get("battery_ratio"),
                power_watts=self._before.get("power_watts"),
                waiting_ratio=_rounded(contention.waiting_ratio),
                steal_ratio=_rounded(contention.steal_ratio),
                least_cpu_mhz=seen.least_cpu_mhz,
                most_cpu_mhz=seen.most_cpu_mhz,
                most_celsius=seen.most_celsius,
            )
        )

    def is_quiet_again(self, complaint: str) -> bool:
        """Say who competes; return whether the machine was waited for and is quiet."""
        if not self.awaits_quiet:
            return False
        config, say = self.config, self.progress.say
        seen = config.board.competition().text
        self.notes.append(f"the machine was busy from the beginning: {complaint}; {seen}")
        say(f"the machine is busy: {complaint}; {seen}")
        wait_s, limit_ratio = config.wait_quiet_s, config.profile.max_others_ratio
        if not wait_s:
            say("going on; --perf-wait-quiet=5m would wait for quiet")
            return False
        say(f"waiting for quiet, {wait_s:g} s at most: others below {limit_ratio * 100.0:g} %")
        is_quiet = await_quiet(config.board.competition, limit_ratio=limit_ratio, wait_s=wait_s)
        say("quiet: beginning anew" if is_quiet else "it did not become quiet: going on all the same")
        return is_quiet


def _as_bool(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 6)
