"""A roofline as JSON values: ceilings, points, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import Ceiling
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row
from perfsuite.verdict.roofline.agreement import agreements
from perfsuite.verdict.roofline.checks import all_checks
from perfsuite.verdict.roofline.paper_findings import paper_findings


def roofline_plain(
    run: RooflineRun, benched: Sequence[Point] = (), *, earlier: RooflineRun | None = None
) -> dict[str, Any]:
    """Return the run with every derived value; points of llama-bench follow those that were measured here.

    Beside an earlier run, the points that both have follow, with their ratio and what they may differ by.
    """
    plain = {
        "suite_version": run.suite_version,
        "recorded_at": run.recorded_at,
        "device": run.device,
        "engine": run.engine,
        "n_threads": run.n_threads,
        "fingerprint": dict(run.fingerprint),
        "ridge_point": run.survey.of(n_threads=run.n_threads).memory_roof.ridge_point,
        "ceilings": [_ceiling(each) for each in run.survey.ceilings],
        "points": [*(_row(run, row) for row in run.rows), *(_point(each) for each in benched)],
        "memory": [_memory(record) for record in run.memory],
        "checks": [asdict(each) for each in all_checks(run)],
        "findings": [asdict(each) for each in paper_findings(run)],
    }
    if earlier is not None:
        plain["again"] = [{**asdict(each), "is_within": each.is_within} for each in agreements(earlier, run)]
    return plain


def _ceiling(ceiling: Ceiling) -> dict[str, Any]:
    rate = ceiling.rate
    return {
        "processor": ceiling.processor,
        "resource": ceiling.resource.value,
        "kind": ceiling.kind,
        "n_threads": ceiling.n_threads,
        "working_set_bytes": ceiling.working_set_bytes,
        "best_per_s": rate and rate.best_per_s,
        "median_per_s": rate and rate.median_per_s,
        "spread_ratio": rate and rate.spread_ratio,
        "n_rounds": rate and rate.n_rounds,
        "missing": ceiling.missing or None,
        "theoretical_per_s": ceiling.theoretical_per_s,
        "theoretical_source": ceiling.theoretical_source or None,
    }


def _row(run: RooflineRun, row: Row) -> dict[str, Any]:
    return {
        **_point(run.point(row)),
        "sweep": row.sweep,
        "setting": row.setting,
        "value": row.value,
        "kind": row.kind.value,
        "role": row.role or None,
        "subject": asdict(row.subject),
        "samples_ns": list(row.samples_ns),
        "spread_ratio": row.spread_ratio,
    }


def _memory(record: MemoryRecord) -> dict[str, Any]:
    return {
        **record.to_plain(),
        "peak_rss_bytes": record.peak.measured_bytes,
        "predicted_peak_rss_bytes": record.peak.predicted_bytes,
        "unexplained_bytes": record.peak.unexplained_bytes,
    }


def _point(point: Point) -> dict[str, Any]:
    potential = point.potential
    return {
        "case": point.case,
        "flops": point.flops,
        "traffic_bytes": point.traffic_bytes,
        "time_ns": point.time_ns,
        "operational_intensity": point.operational_intensity,
        "least_operational_intensity": point.least_intensity,
        "most_operational_intensity": point.most_intensity,
        "flops_per_s": point.flops_per_s,
        "peak_flops_per_s": point.roof.peak_flops_per_s,
        "bandwidth_bytes_per_s": point.roof.bandwidth_bytes_per_s,
        "ridge_point": point.roof.ridge_point,
        "attainable_flops_per_s": point.attainable_flops_per_s,
        "attainable_ratio": point.attainable_ratio,
        "mbu_ratio": point.mbu_ratio,
        "mfu_ratio": point.mfu_ratio,
        "regime": point.regime.value,
        "relative_inference_potential": potential.decades,
        "relative_inference_potential_literal": potential.literal,
    }
