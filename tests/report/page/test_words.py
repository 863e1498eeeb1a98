"""Sentences and figures of the page."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_origin import NO_ORIGIN
from perfsuite.report.page.words import (
    basis_words,
    case_anchor,
    commit_words,
    duration_words,
    expected_words,
    headline_change,
    interval_text,
    kind_place,
    kind_title,
    meaning,
    outcome_word,
    reason_beside,
    short_name,
    spread_words,
    when_words,
)
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run


@pytest.mark.parametrize("case_id", [*HOSTILE_NAMES, "phase/a-q8_0/siso/decode", "x % y"])
def test_an_anchor_holds_the_whole_id(case_id: str) -> None:
    """An anchor is of plain characters alone, and what it stands for can be read from it again."""
    anchor = case_anchor(case_id)
    assert re.fullmatch(r"case=[A-Za-z0-9/:@!$*+,;~._%-]*", anchor)
    assert unquote(anchor) == f"case={case_id}"


def test_an_anchor_of_half_a_character_can_be_written() -> None:
    assert case_anchor("a\ud800") == "case=a%3F"


def test_names_lack_what_the_page_says_once() -> None:
    """Kinds come in the order of the road, and outcomes have words of their own."""
    assert short_name("operator/a/siso/decode/ffn_up", "a/siso") == "decode/ffn_up"
    assert short_name("kernel/gemm/m1/f32", "a/siso") == "gemm/m1/f32"
    assert short_name("lonely", "a/siso") == "lonely"
    assert short_name("phase/a/siso/", "a/siso") == "a/siso/"
    kinds = sorted(["zebra", "kernel", "operator", "ape", "phase"], key=kind_place)
    assert kinds == ["phase", "operator", "kernel", "ape", "zebra"]
    assert [kind_title(kind) for kind in ("phase", "ape", "")] == ["Phases", "Ape", "Without a kind"]
    assert len({outcome_word(outcome) for outcome in Outcome}) == len(Outcome)
    assert len({meaning(outcome) for outcome in Outcome}) == len(Outcome)


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
    stored = replace(regressed(), n_pairs=None)
    assert basis_words(stored) == f"+18.1 % to +21.0 %, {len(stored.samples_ns)} replicates"
    stored = replace(regressed(), lower_ratio=None, upper_ratio=None, n_pairs=None)
    assert basis_words(stored) == f"{len(stored.samples_ns)} replicates"
    assert reason_beside(stored) == stored.reason
    large = replace(regressed(), change_ratio=20.0, lower_ratio=1.9, upper_ratio=21.3)
    assert interval_text(large) == "+90.0 % to × 21.3"
    assert headline_change(large) == ("× 20", "slower")


def test_a_broken_bound_is_told_by_how_far() -> None:
    """A slow case over its limit, an impossible one below the floor, a forecast with its bounds where it has some."""
    slow = replace(regressed(), outcome=Outcome.SLOW, measured_ns=130, limit_ns=100, samples_ns=(120, 130, 140))
    assert headline_change(slow) == ("+30.0 %", "over its limit")
    assert basis_words(slow) == spread_words(slow) == "3 replicates, 120 ns to 140 ns"
    assert headline_change(replace(slow, outcome=Outcome.IMPOSSIBLE, floor_ns=260)) == ("-50.0 %", "below the floor")
    case = replace(regressed(), expected_ns=5_000, lower_ns=4_000, upper_ns=6_500)
    assert expected_words(case) == "5.00 µs (4.00 µs to 6.50 µs)"
    assert expected_words(replace(case, lower_ns=None)) == "5.00 µs"


@pytest.mark.parametrize(
    ("started_at", "told"),
    [
        ("2026-03-01T02:00:59.000+00:00", "2026-03-01 02:00 UTC"),
        ("2026-03-01T02:00:00+02:00", "2026-03-01 00:00 UTC"),
        ("2026-03-01T02:00:00", "2026-03-01 02:00 UTC"),
        ("2026-03-01T02:00:00Z", "2026-03-01 02:00 UTC"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        ("last night", "last night"),
    ],
)
def test_times_are_told_in_utc(started_at: str, told: str) -> None:
    """A time, with its zone or in UTC, is printed to the minute in UTC, any other text as it is."""
    assert when_words(started_at) == told


def test_commits_and_durations_are_told_shortly() -> None:
    """A commit has its branch and whether files differ; a long run is reported in minutes and seconds."""
    commit = RUN.origin.commit
    assert commit is not None
    dirty = replace(RUN, origin=replace(RUN.origin, commit=replace(commit, sha="0123456789abcdef", is_dirty=True)))
    assert commit_words(dirty) == "0123456789ab on main, with changes"
    assert commit_words(replace(RUN, origin=NO_ORIGIN)) == "not known"
    assert duration_words(replace(RUN, durations_s={"a": 5.24, "b": 10.0})) == "15.2 s"
    assert duration_words(replace(RUN, durations_s={"a": 119.7})) == "2 min 0 s"
