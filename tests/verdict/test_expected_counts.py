"""An operator that does more than its formula says is a finding, without any baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.records.counts import read_counts
from perfsuite.verdict.expected_counts import expected_counts
from tests.catalogue_workloads import catalogue_workload
from tests.synthetic_counts import WORKLOADS, made_of_terms, made_ratios

#: Of a size that no ratio was fitted to.
OTHER = catalogue_workload("smollm2-360m-l3-q8_0", "p20-g3")


@pytest.mark.parametrize("workload", [WORKLOADS[0], OTHER], ids=["known", "held-out"])
def test_what_a_formula_says_is_no_finding(workload: LlamaWorkload) -> None:
    found = expected_counts(made_of_terms(workload), workload, made_ratios())
    assert found
    assert [each.case_id for each in found.values() if each.is_finding] == []


def test_twice_the_work_is_a_finding() -> None:
    """It alone is one; all of its metrics are."""
    found = expected_counts(made_of_terms(OTHER, result_output=2), OTHER, made_ratios())
    findings = {case_id: each for case_id, each in found.items() if each.is_finding}
    prefix = f"counted/{OTHER.prefix}"
    assert findings.keys() == {
        f"{prefix}/{phase}/result_output/{metric}"
        for phase in ("prefill", "decode")
        for metric in ("instructions", "bytes_read", "bytes_written")
    }
    assert all(each.ratio == pytest.approx(2.0, rel=0.01) for each in findings.values())
    told = findings[f"{prefix}/decode/result_output/instructions"].told
    assert "instructions a FLOP, expected " in told


def test_nothing_is_expected_without_a_ratio_of_the_build_and_the_operator() -> None:
    """Ratios are those of a compiler and a processor; another llama.cpp is what is judged."""
    counted = made_of_terms(OTHER)
    assert expected_counts(replace(counted, compiler="gcc 12"), OTHER, made_ratios()) == {}
    assert expected_counts(replace(counted, processor="x86-64-v4"), OTHER, made_ratios()) == {}
    assert expected_counts(replace(counted, llama="a checkout"), OTHER, made_ratios())
    workload = catalogue_workload("smollm2-135m-l2-q4_0", "p16-g4")
    found = expected_counts(made_of_terms(workload), workload, made_ratios())
    roles = {case_id.split("/")[-2] for case_id in found}
    assert "attn_norm" in roles
    assert "Qcur" not in roles


def test_a_planted_change_of_the_committed_counts_is_found() -> None:
    """The standard run's: what stands out today, and a product that does a tenth more."""
    counted = read_counts(Path("baselines/counted/x86-64-v3/smollm2-135m-l4-q8_0-p16-g4.json"))
    workload = catalogue_workload("smollm2-135m-l4-q8_0", "p16-g4")
    planted = tuple(
        replace(row, instructions=row.instructions * 11 // 10) if row.name == "decode/ffn_up" else row
        for row in counted.rows
    )
    findings = [
        [each.case_id.split("/", 3)[3] for each in expected_counts(now, workload).values() if each.is_finding]
        for now in (counted, replace(counted, rows=planted))
    ]
    known = ["prefill/result_norm/instructions", "decode/result_norm/instructions"]
    assert findings == [known, [known[0], "decode/ffn_up/instructions", known[1]]]
