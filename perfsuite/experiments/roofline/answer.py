"""A roofline as JSON values: ceilings, points, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import fields_of
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import Ceiling
from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row
from perfsuite.experiments.roofline.agreement import agreements
from perfsuite.experiments.roofline.checks import all_checks
from perfsuite.experiments.roofline.paper_findings import paper_findings


def roofline_plain(
    run: RooflineRun, benched: Sequence[Point] = (), *, earlier: RooflineRun | None = None
) -> dict[str, Any]:
    """Return the run with every derived value; points of llama-bench follow those that were measured here.

    Beside an earlier run, the points that both have follow, with their ratio and what they may differ by.
    """
    plain = {
        **fields_of(run, "suite_version", "recorded_at", "device", "engine", "n_threads"),
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
    rates = ("best_per_s", "median_per_s", "spread_ratio", "n_rounds")
    return {
        **fields_of(ceiling, "processor", "kind", "n_threads", "working_set_bytes", "theoretical_per_s"),
        **(fields_of(ceiling.rate, *rates) if ceiling.rate else dict.fromkeys(rates)),
        "resource": ceiling.resource.value,
        "missing": ceiling.missing or None,
        "theoretical_source": ceiling.theoretical_source or None,
    }


def _row(run: RooflineRun, row: Row) -> dict[str, Any]:
    return {
        **_point(run.point(row)),
        **fields_of(row, "sweep", "setting", "value", "spread_ratio"),
        "kind": row.kind.value,
        "role": row.role or None,
        "subject": asdict(row.subject),
        "samples_ns": list(row.samples_ns),
    }


def _memory(record: MemoryRecord) -> dict[str, Any]:
    return {
        **record.to_plain(),
        "peak_rss_bytes": record.peak.measured_bytes,
        "predicted_peak_rss_bytes": record.peak.predicted_bytes,
        "unexplained_bytes": record.peak.unexplained_bytes,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        **fields_of(point, "case", "flops", "traffic_bytes", "time_ns", "operational_intensity", "flops_per_s"),
        "least_operational_intensity": point.least_intensity,
        "most_operational_intensity": point.most_intensity,
        **fields_of(point.roof, "peak_flops_per_s", "bandwidth_bytes_per_s", "ridge_point"),
        **fields_of(point, "attainable_flops_per_s", "attainable_ratio", "mbu_ratio", "mfu_ratio"),
        "regime": point.regime.value,
        "relative_inference_potential": point.potential.decades,
        "relative_inference_potential_literal": point.potential.literal,
    }
