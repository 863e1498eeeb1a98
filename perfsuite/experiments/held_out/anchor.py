"""How fast the device is now against when it was calibrated: a model of the calibration's own is run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.calibration_plan import standard_compositions
from perfsuite.records.events import EngineRecord, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What is run again."""

    workload: LlamaWorkload
    #: What an occurrence of each phase took when the device was calibrated, ns.
    calibrated_ns: Mapping[Phase, float]

    def drift_ratios(self, record: EngineRecord) -> dict[Phase, float]:
        """Return the time of each phase now over that of the calibration."""
        return {phase: phase_ns(record, phase) / then_ns for phase, then_ns in self.calibrated_ns.items()}


def anchor_of(calibration: Calibration, *, models_dir: Path) -> Anchor | None:
    """Return the first model that a calibration ran whole; None where it ran none that is known by now."""
    for workload in (each for each in standard_compositions(models_dir) if each.is_analytical):
        found = [each for each in calibration.compositions if each.name == workload.weights.name]
        if found:
            times = {
                Phase(each.phase): median(map(sum, zip(each.operators_ns, each.rest_ns, strict=True))) for each in found
            }
            return Anchor(workload=workload, calibrated_ns=times)
    return None


def phase_ns(record: EngineRecord, phase: Phase) -> float:
    """Return what one occurrence of a phase took in a process, ns."""
    return median(span.duration_ns for span in record.spans if span.phase is phase)
