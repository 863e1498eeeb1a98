"""What one process measured of shapes, remembered, so that a shape is measured once for all properties."""

from __future__ import annotations

from functools import cache

from perfsuite.measure.shapes.meter import PairSamples, ShapeMeter
from perfsuite.workload.shapes.shape_case import ShapeCase


class Measurements:
    """Measures with one meter; what was measured before is given again."""

    def __init__(self, meter: ShapeMeter) -> None:
        self._meter = meter
        #: Why a case cannot be computed, None where it can; and how far its output is from NumPy's.
        self.problem = cache(meter.problem)
        self.deviation = cache(meter.verify)
        self._samples_ns: dict[str, tuple[int, ...]] = {}
        self._pairs: dict[tuple[str, str], PairSamples] = {}
        self._fastest_ns: dict[str, int] = {}

    def samples_ns(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        """Return `n_samples` or more samples of the case alone."""
        known = self._samples_ns.get(case.case_id, ())
        if len(known) < n_samples:
            known += self._meter.samples(case, n_samples - len(known))
            self._samples_ns[case.case_id] = known
            self._note(case, known)
        return known

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        key = (old.case_id, new.case_id)
        if key not in self._pairs or len(self._pairs[key].old_ns) < n_pairs:
            pairs = self._meter.pairs(old, new, n_pairs)
            self._pairs[key] = pairs
            self._note(old, pairs.old_ns)
            self._note(new, pairs.new_ns)
        return self._pairs[key]

    def fastest_ns(self, case: ShapeCase, n_samples: int) -> int:
        """Return the fastest sample of the case, whatever it was measured for; measured where nothing was."""
        if case.case_id not in self._fastest_ns:
            self.samples_ns(case, n_samples)
        return self._fastest_ns[case.case_id]

    def _note(self, case: ShapeCase, samples_ns: tuple[int, ...]) -> None:
        known = self._fastest_ns.get(case.case_id)
        self._fastest_ns[case.case_id] = min(samples_ns if known is None else (known, *samples_ns))
