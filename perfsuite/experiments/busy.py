"""What a run does on a machine that is busy: it says who competes, and waits for quiet where it was asked to."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.competition import await_quiet


@dataclass(kw_only=True)
class BusyMachine:
    """The competition that one group of measurements met at its beginning."""

    config: RunConfig
    progress: ProgressLine
    #: Who competed, for whoever reads the run.
    notes: list[str] = field(default_factory=list)

    def is_quiet_again(self, complaint: str) -> bool:
        """Say who competes; return whether the machine was waited for and is quiet, so that one may begin anew."""
        seen = self.config.board.competition().text
        self.notes.append(f"the machine was busy from the beginning: {complaint}; {seen}")
        self.progress.say(f"the machine is busy: {complaint}; {seen}")
        wait_s = self.config.wait_quiet_s
        if not wait_s:
            self.progress.say("going on; --perf-wait-quiet=5m would wait for quiet")
            return False
        limit_ratio = self.config.profile.max_others_ratio
        self.progress.say(f"waiting for quiet, {wait_s:g} s at most: others below {limit_ratio * 100.0:g} %")
        is_quiet = await_quiet(self.config.board.competition, limit_ratio=limit_ratio, wait_s=wait_s)
        self.progress.say("quiet: beginning anew" if is_quiet else "it did not become quiet: going on all the same")
        return is_quiet
