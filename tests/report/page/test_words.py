"""Sentences and figures of the page."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.page.words import (
    basis_words,
    case_anchor,
    headline_change,
    interval_text,
    reason_beside,
    spread_words,
)
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run


@pytest.mark.parametrize("case_id", [*HOSTILE_NAMES, "phase/a-q8_0/siso/decode", "x % y"])
def test_an_anchor_holds_the_whole_id(case_id: str) -> None:
    """An anchor is of plain characters alone, and what it stands for can be read from it again."""
    anchor = case_anchor(case_id)
    assert re.fullmatch(r"case=[A-Za-z0-9/:@!$*+,;~._%-]*", anchor)
    assert unquote(anchor) == f"case={case_id}"


RUN = synthetic_run(n_cases=60)


def regressed() -> Judgement:
    return replace(
        next(each for each in RUN.judgements if each.outcome is Outcome.REGRESSED),
        change_ratio=1.195,
        lower_ratio=1.181,
        upper_ratio=1.21,
        n_pairs=12,
        reason="+19.5 % (+18.1 % to +21.0 %), margin 2 %",
    )


def test_a_count_is_more_work_and_exact() -> None:
    count = replace(regressed(), kind="counted", samples_ns=(), lower_ratio=None, upper_ratio=None, n_pairs=None)
    assert headline_change(count) == ("+19.5 %", "more work")
    assert basis_words(count) == "exact"


def test_a_change_comes_with_how_sure_it_is() -> None:
    """Direction, interval, pairs or replicates, and of its reason what these do not say; large ones are factors."""
    assert headline_change(regressed()) == ("+19.5 %", "slower")
    assert basis_words(regressed()) == "+18.1 % to +21.0 %, 12 pairs"
    assert reason_beside(regressed()) == "margin 2 %"
    stored = replace(regressed(), lower_ratio=None, upper_ratio=None, n_pairs=None)
    assert basis_words(stored) == f"{len(stored.samples_ns)} replicates"
    assert reason_beside(stored) == stored.reason
    large = replace(regressed(), change_ratio=20.0, lower_ratio=1.9, upper_ratio=21.3)
    assert interval_text(large) == "+90.0 % to × 21.3"
    assert headline_change(large) == ("× 20", "slower")


def test_a_broken_bound_is_told_by_how_far() -> None:
    """A slow case over its limit, an impossible one below the floor."""
    slow = replace(regressed(), outcome=Outcome.SLOW, measured_ns=130, limit_ns=100, samples_ns=(120, 130, 140))
    assert headline_change(slow) == ("+30.0 %", "over its limit")
    assert basis_words(slow) == spread_words(slow) == "3 replicates, 120 ns to 140 ns"
    assert headline_change(replace(slow, outcome=Outcome.IMPOSSIBLE, floor_ns=260)) == ("-50.0 %", "below the floor")
