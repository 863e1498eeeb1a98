"""What ``perfsuite kernels --json`` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.trace.opencl.engine_view import PhaseView
from perfsuite.verdict.traced_view import TracedView


def print_view(traced: TracedView, workload: LlamaWorkload, backend: OpenClBackend) -> None:
    """Print a run as one JSON object; times in ns, shares as ratios."""
    view = traced.view
    plain = {
        "workload": workload.prefix,
        "engine": traced.engine_version,
        "device": backend.fingerprint,
        "clocks": [{**asdict(clock), "basis": clock.basis.value} for clock in traced.aligned.clocks],
        "problems": [*view.problems, *([traced.complaint] if traced.complaint else [])],
        "phases": [_plain_phase(each) for each in view.phases],
        "growth": [{**asdict(each), "grows": each.grows, "growth_ratio": each.growth_ratio} for each in view.growth],
        "forecast_errors": [asdict(each) for each in view.forecast_errors],
    }
    print(json.dumps(plain, indent=1))


def _plain_phase(view: PhaseView) -> dict[str, Any]:
    return {
        "phase": view.phase.value,
        "n_occurrences": view.n_occurrences,
        "duration_ns": view.duration_ns,
        "operators_ratio": view.operators_ratio,
        "idle_ratio": [window.idle_ratio for window in view.idle],
        "kernels": [{**asdict(each), "operators": list(view.roles.get(each.name, ()))} for each in view.kernels],
    }
