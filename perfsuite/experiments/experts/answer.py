"""How experts are reused, as JSON values."""

from __future__ import annotations

from typing import Any

from perfsuite.experiments.experts.view import ExpertReport
from perfsuite.report.plain_fields import plain_fields
from perfsuite.trace.experts.faults import FaultRelation
from perfsuite.trace.experts.reuse import LayerReuse

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

_HITS = ("n_cached", "n_accesses", "lru_hit_ratio", "optimum_hit_ratio")


def plain_experts(report: ExpertReport) -> dict[str, Any]:
    """Return a run's experts as JSON values."""
    return {
        "schema": SCHEMA,
        "name": report.name,
        "layers": [_layer(each) for each in report.layers],
        "caches": [plain_fields(each, *_HITS) for each in report.sizes],
        "cache": report.asked and plain_fields(report.asked, *_HITS),
        "faults": _faults(report.faults),
    }


def _layer(layer: LayerReuse) -> dict[str, Any]:
    counts = ("layer", "n_experts", "n_used", "n_iterations")
    reuse = ("density_ratio", "run_density_ratio", "mean_distance", "mean_stack_distance")
    return {
        **plain_fields(layer, *counts, *reuse),
        "n_activations": len(layer.activations),
        "experts": [plain_fields(use, "expert", "n_activations", "mean_distance") for use in layer.uses()],
    }


def _faults(faults: FaultRelation) -> dict[str, Any]:
    correlations = plain_fields(faults, "distance_to_time", "distance_to_faults", "faults_to_time")
    of_bin = ("least_distance", "most_distance", "n", "mean_time_ns", "mean_major_faults")
    return {
        "n_evaluations": len(faults.evaluations),
        "n_major_faults": faults.n_major_faults,
        **{name: found and plain_fields(found, "rho", "p") for name, found in correlations.items()},
        "bins": [plain_fields(each, *of_bin) for each in faults.bins],
    }
