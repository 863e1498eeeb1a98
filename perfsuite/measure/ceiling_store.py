"""Keeps the best ceilings that a machine has ever shown, for a floor that no honest measurement undercuts.

A shared machine may show half of its bandwidth for minutes. A ceiling measured in such a stretch is too low to be a
ceiling, so the best of all runs is kept, by everything that decides what a machine can do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.ceilings import Ceilings, merge_ceilings
from perfsuite.records.json_file import write_json


def best_ceilings(measured: Ceilings, fingerprint: Mapping[str, str], cache_dir: Path) -> Ceilings:
    """Merge `measured` with what the store holds for this machine and thread count, keep the best, and return it.

    A store that cannot be read or written is left alone: the run goes on with what it measured itself.
    """
    path = _path(fingerprint, measured.n_threads, cache_dir)
    stored = _stored(path)
    best = merge_ceilings((stored, measured)) if stored and _are_alike(stored, measured) else measured
    try:
        write_json(path, best.to_plain(), MeasurementError)
    except MeasurementError:
        return best
    return best


def stored_ceilings(fingerprint: Mapping[str, str], n_threads: int, cache_dir: Path) -> Ceilings | None:
    """Return the best that this machine has shown with so many threads; None where there is nothing to read."""
    return _stored(_path(fingerprint, n_threads, cache_dir))


def _path(fingerprint: Mapping[str, str], n_threads: int, cache_dir: Path) -> Path:
    identity = json.dumps([dict(sorted(fingerprint.items())), n_threads])
    return cache_dir / "ceilings" / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def _stored(path: Path) -> Ceilings | None:
    try:
        return Ceilings.from_plain(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, MeasurementError):
        return None


def _are_alike(first: Ceilings, second: Ceilings) -> bool:
    """Tell whether two sets were measured at the same working sets and with the same arithmetic."""

    def shape(ceilings: Ceilings) -> tuple[object, ...]:
        sizes = tuple(level.working_set_bytes for level in ceilings.bandwidths)
        return ceilings.n_threads, sizes, ceilings.f16_flops_per_s is None

    return shape(first) == shape(second)
