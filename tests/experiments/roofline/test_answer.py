"""A roofline for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
from perfsuite.expectation.roofline.roofline_run import RooflineRun, RowKind
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.experiments.roofline.answer import roofline_plain
from perfsuite.experiments.roofline.paper_findings import paper_findings
from tests.synthetic_roofline import independent_rate, memory_record, prefill_row, roofline_run, row, survey

KEYS = {
    *("case", "operational_intensity", "flops_per_s", "attainable_flops_per_s", "regime"),
    "relative_inference_potential",
}

MISSING = Ceiling(processor="opencl", resource=Resource.BANDWIDTH, kind="read", missing="no platform has a device")


def programs_read(run: RooflineRun) -> dict[str, Any]:
    """Return what programs read, through JSON and back."""
    found: dict[str, Any] = json.loads(json.dumps(roofline_plain(run), allow_nan=False))
    return found


def test_points_have_the_promised_keys() -> None:
    """2 GFLOP over 1 GB in 100 ms lie at half of the 40 GFLOP/s that 20 GB/s let them attain."""
    (point, _) = programs_read(roofline_run())["points"]
    assert set(point) >= KEYS
    assert point["case"] == "roofline/base/own-q8_0/siso/t2/decode"
    assert (point["operational_intensity"], point["flops_per_s"]) == (2.0, 20e9)
    assert (point["attainable_flops_per_s"], point["attainable_ratio"]) == (40e9, 0.5)
    assert (point["regime"], point["ridge_point"]) == ("memory", 80.0)
    assert point["relative_inference_potential"] == pytest.approx(2.488, abs=0.001)
    assert (point["kind"], point["role"], point["samples_ns"]) == ("decode", None, [99000000, 100000000, 102000000])


def test_ceilings_are_all_there() -> None:
    """Each has its rate, or null and the reason; the ridge is that of memory and FP32."""
    run = roofline_run(survey=Survey(ceilings=(*survey().ceilings, MISSING)))
    plain = programs_read(run)
    assert plain["ridge_point"] == 20.0
    assert len(plain["ceilings"]) == len(run.survey.ceilings)
    assert plain["ceilings"][0]["best_per_s"] == 100e9
    assert plain["ceilings"][0]["missing"] is None
    missing = [each for each in plain["ceilings"] if each["missing"]]
    assert [(each["processor"], each["kind"], each["best_per_s"], each["missing"]) for each in missing] == [
        ("cpu", "f16", None, "the processor has none"),
        ("opencl", "read", None, "no platform has a device"),
    ]


def test_memory_and_bounds_are_there() -> None:
    """Peaks beside their prediction, and what others reached among the checks."""
    plain = programs_read(roofline_run(memory=(memory_record(),), bounds=(independent_rate(),)))
    (memory,) = plain["memory"]
    assert (memory["peak_rss_bytes"], memory["predicted_peak_rss_bytes"], memory["unexplained_bytes"]) == (
        *(1600, 1500),
        100,
    )
    checks = {each["name"]: each["holds"] for each in plain["checks"]}
    assert (checks["bound/cpu/read"], checks["bound/opencl/read"]) == (True, None)
    assert checks["memory/own-q8_0/siso"] is True


def test_findings_are_there_undecided_as_well() -> None:
    """A run without sweeps has every finding of the paper with null and its reason."""
    findings = programs_read(roofline_run())["findings"]
    assert len(findings) == len(paper_findings(roofline_run()))
    assert {each["holds"] for each in findings} == {None}
    assert all(each["evidence"] for each in findings)


def test_operators_have_their_role() -> None:
    """The phase and the role name an operator."""
    plain = programs_read(roofline_run(row(kind=RowKind.OPERATOR, role="decode/ffn_up"), prefill_row()))
    assert plain["points"][0]["case"].endswith("/t2/decode/ffn_up")
    assert plain["points"][0]["role"] == "decode/ffn_up"


def test_points_of_llama_bench_follow() -> None:
    """They have the same keys and no samples of ours."""
    run = roofline_run()
    plain = roofline_plain(run, [run.point(run.rows[0])])
    assert len(plain["points"]) == 3
    assert set(plain["points"][2]) >= KEYS
    assert "samples_ns" not in plain["points"][2]
