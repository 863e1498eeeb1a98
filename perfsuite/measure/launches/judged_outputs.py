"""How far outputs of kernels are from their references, each judged once."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfsuite.errors import MeasurementError
from perfsuite.measure.kernel_launches import CPU_TUNING, describe
from perfsuite.measure.kernel_references import error_norm
from perfsuite.workload.kernel_catalog import KernelCase

#: Most outputs of a case that are known by their digests: a kernel that never computes the same twice has no more.
_MOST_KNOWN = 16


@dataclass(kw_only=True)
class JudgedOutputs:
    """By case and seed: how far each output that has arrived is from the reference, by its SHA-256."""

    _found: dict[tuple[str, int], dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def known(self, case: KernelCase, seed: int) -> tuple[str, ...]:
        """Return the digests of the outputs that need not arrive again."""
        return tuple(self._found[case.case_id, seed])

    def deviation(self, case: KernelCase, seed: int, told: Mapping[str, Any]) -> float:
        """Return the error norm of what a launch has told of its output; infinite where it wrote behind that.

        Raises `MeasurementError` where the output did not arrive whole.
        """
        if not told["is_guard_whole"]:
            return math.inf
        digest, known = str(told["sha256"]), self._found[case.case_id, seed]
        if digest not in known and told["output"] is not None:
            while len(known) >= _MOST_KNOWN:
                del known[next(iter(known))]
            known[digest] = _judged(case, seed, told["output"], digest)
        return known[digest]


def _judged(case: KernelCase, seed: int, output: bytes, digest: str) -> float:
    if len(output) != case.written_bytes or hashlib.sha256(output).hexdigest() != digest:
        raise MeasurementError(
            f"{case.case_id}: its output arrived with {len(output)} bytes, expected {case.written_bytes} with SHA-256 "
            f"{digest[:16]}; measure again"
        )
    expected = describe(case, CPU_TUNING, seed).expected  # no tuning changes what is to be computed
    return error_norm(np.frombuffer(output, np.float32).reshape(expected.shape), expected)
