"""Names as figures have room for them."""

from __future__ import annotations

import pytest

from perfsuite.records.outcome import Outcome, told_judgement
from perfsuite.report.page.charts.names import case_name, cut_middle, phase_of, readable, role_of, short_names
from perfsuite.testing.run_files import HOSTILE_NAMES


def test_a_long_name_is_cut_in_its_middle() -> None:
    """Beginning and end stay, or the end that tells names apart; a label is never empty."""
    assert cut_middle("abcdefghij", 7) == "abc…hij"
    assert cut_middle("abcdefg", 7) == "abcdefg"
    sweeps = [f"prompt/smollm2-135m {size}+32/decode" for size in (64, 96)]
    assert short_names(sweeps, 16) == ("…5m 64+32/decode", "…5m 96+32/decode")
    assert short_names(["gemm/m64-n128-k576/f32", "gemm/m32-n128-k576/f32"], 12) == ("gemm/m64-n1…", "gemm/m32-n1…")
    assert readable(" \n") == "(no name)"
    assert readable("בדיקה 17") == "\u2068בדיקה 17\u2069"


@pytest.mark.parametrize("most", [8, 22])
def test_short_names_are_short_and_no_two_are_alike(most: int) -> None:
    """Hostile names, and twins of each, get labels of their own."""
    names = [*HOSTILE_NAMES, *HOSTILE_NAMES, "x" * 99, "x" * 98 + "y", "x" * 50 + "z" + "x" * 48, "a", "a (2)", "a"]
    short = short_names(names, most)
    assert len(set(short)) == len(short) == len(names)
    assert max(map(len, short)) <= most + len("\u2068\u2069") + len(" (10)") - 4


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_readable_name_does_not_turn_the_words_beside_it(name: str) -> None:
    kept = readable(name)
    assert not any(each < " " or each in "\u202a\u202b\u202d\u202e\u2067" for each in kept)
    assert kept.count("\u2068") == kept.count("\u2069")


def test_a_case_is_named_without_what_all_share() -> None:
    """Kind, architecture and scenario are a whole run's; an id that is too short is whole."""
    cases = [
        ("phase", "phase/a/s/prefill"),
        ("operator", "operator/a/s/decode/ffn_up"),
        ("kernel", "kernel/gemm/m1/f32"),
    ]
    judgements = [told_judgement(case_id, kind, Outcome.PASS, "") for kind, case_id in cases]
    assert [case_name(each) for each in judgements] == ["prefill", "decode/ffn_up", "gemm/m1/f32"]
    assert [phase_of(each) for each in judgements] == [None, "decode", None]
    assert role_of(judgements[1]) == "ffn_up"
    assert case_name(told_judgement("phase/x", "phase", Outcome.PASS, "")) == "x"
    assert case_name(told_judgement("my/own", "tokenizer", Outcome.PASS, "")) == "my/own"
