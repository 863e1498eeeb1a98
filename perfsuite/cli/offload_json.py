"""What ``perfsuite offload --json`` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.trace.offload import OffloadPoint, OffloadSweep, Speed
from perfsuite.trace.placement import Placement

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def print_sweep(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> None:
    """Print a sweep as one JSON object; speeds in tokens per second, numbers of operators without views."""
    plain = {
        "schema": SCHEMA,
        "workload": workload.prefix,
        "engine": sweep.engine_version,
        "device": backend.fingerprint,
        "flash_attn": workload.settings.flash_attn,
        "n_gpu_layers_all": workload.weights.architecture.n_layers + 1,
        "points": [_plain_point(each) for each in sweep.points],
    }
    print(json.dumps(plain, indent=1))


def _plain_point(point: OffloadPoint) -> dict[str, Any]:
    return {
        "n_gpu_layers": point.n_gpu_layers,
        "speeds": [_plain_speed(each) for each in point.speeds],
        "n_disturbed": point.n_disturbed,
        "placements": [_plain_placement(each) for each in point.placements],
    }


def _plain_speed(speed: Speed) -> dict[str, Any]:
    return {
        "phase": speed.phase.value,
        "median_tokens_per_s": speed.median_tokens_per_s,
        "least_tokens_per_s": speed.least_tokens_per_s,
        "most_tokens_per_s": speed.most_tokens_per_s,
        "samples_tokens_per_s": list(speed.samples_tokens_per_s),
    }


def _plain_placement(placed: Placement) -> dict[str, Any]:
    return {
        "phase": placed.phase.value,
        "splits": list(placed.splits),
        "backends": [asdict(each) for each in placed.shares],
        "on_processor": [asdict(each) for each in placed.on_processor],
    }
