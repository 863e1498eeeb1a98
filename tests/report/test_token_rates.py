"""Tokens a second of prefill and decode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.report.exports.openmetrics import openmetrics_text
from perfsuite.report.token_rates import timed, tokens_per_s
from perfsuite.testing.run_files import synthetic_run
from perfsuite.workload.prompts import prompts_scenario

from ..synthetic_judgements import PASSED, case

MANY = prompts_scenario((5, 70, 9), 8).name


@pytest.mark.parametrize(
    ("case_id", "rate"),
    [
        ("phase/a-q8_0/siso/prefill", 64 / 0.005),
        ("phase/a-q8_0/p100-g4-d7/prefill", 100 / 0.005),
        (f"phase/a-q8_0/{MANY}/prefill", None),
        (f"phase/a-q8_0/{MANY}/decode", 1 / 0.005),
        ("phase/a-q8_0/siso/sampling", None),
        ("operator/a-q8_0/siso/decode/ffn_up", None),
        ("kernel/mul/siso/prefill", None),
    ],
)
def test_the_scenario_says_of_how_many_tokens_a_time_is(case_id: str, rate: float | None) -> None:
    """A prefill has its prompt's tokens, a decode step one; what has no one number of tokens has no speed."""
    assert tokens_per_s(case(case_id)) == rate


def test_what_was_not_measured_has_no_speed() -> None:
    """A time that is not known, or 0, is no speed."""
    assert tokens_per_s(replace(PASSED, measured_ns=None)) is tokens_per_s(replace(PASSED, measured_ns=0)) is None


def test_a_time_has_its_speed_beside_it() -> None:
    """Of a phase with tokens both are told, of others the time alone."""
    assert timed(PASSED, 34_800_000) == "34.8 ms (28.7 tokens/s)"
    assert timed(case("phase/a/b/copy"), 34_800_000) == "34.8 ms"
    assert timed(PASSED, None) == "-"


def test_prometheus_has_the_speed_of_the_phases() -> None:
    """Each prefill and decode is one sample, and nothing else is."""
    text = openmetrics_text([replace(synthetic_run(), judgements=(PASSED, case("phase/a/b/copy")))])
    found = [line for line in text.splitlines() if line.startswith("perfsuite_case_tokens_per_second{")]
    assert len(found) == 1
    assert found[0].endswith("} 200.0")
