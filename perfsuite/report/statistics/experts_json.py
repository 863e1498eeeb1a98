"""How experts are reused, as JSON values."""

from __future__ import annotations

from typing import Any

from perfsuite.report.statistics.experts import ExpertReport
from perfsuite.trace.experts.cache import CacheHits
from perfsuite.trace.experts.faults import FaultRelation, RankCorrelation
from perfsuite.trace.experts.reuse import LayerReuse

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def plain_experts(report: ExpertReport) -> dict[str, Any]:
    """Return a run's experts as JSON values."""
    return {
        "schema": SCHEMA,
        "name": report.name,
        "layers": [_layer(each) for each in report.layers],
        "caches": [_hits(each) for each in report.sizes],
        "cache": None if report.asked is None else _hits(report.asked),
        "faults": _faults(report.faults),
    }


def _layer(layer: LayerReuse) -> dict[str, Any]:
    return {
        "layer": layer.layer,
        "n_experts": layer.n_experts,
        "n_used": layer.n_used,
        "n_iterations": layer.n_iterations,
        "n_activations": len(layer.activations),
        "density_ratio": layer.density_ratio,
        "run_density_ratio": layer.run_density_ratio,
        "mean_distance": layer.mean_distance,
        "mean_stack_distance": layer.mean_stack_distance,
        "experts": [
            {"expert": use.expert, "n_activations": use.n_activations, "mean_distance": use.mean_distance}
            for use in layer.uses()
        ],
    }


def _hits(hits: CacheHits) -> dict[str, Any]:
    return {
        "n_cached": hits.n_cached,
        "n_accesses": hits.n_accesses,
        "lru_hit_ratio": hits.lru_hit_ratio,
        "optimum_hit_ratio": hits.optimum_hit_ratio,
    }


def _faults(faults: FaultRelation) -> dict[str, Any]:
    return {
        "n_evaluations": len(faults.evaluations),
        "n_major_faults": faults.n_major_faults,
        "distance_to_time": _correlation(faults.distance_to_time),
        "distance_to_faults": _correlation(faults.distance_to_faults),
        "faults_to_time": _correlation(faults.faults_to_time),
        "bins": [
            {
                "least_distance": each.least_distance,
                "most_distance": each.most_distance,
                "n": each.n,
                "mean_time_ns": each.mean_time_ns,
                "mean_major_faults": each.mean_major_faults,
            }
            for each in faults.bins
        ],
    }


def _correlation(found: RankCorrelation | None) -> dict[str, float] | None:
    return None if found is None else {"rho": found.rho, "p": found.p}
