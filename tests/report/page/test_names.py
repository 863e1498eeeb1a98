"""Names of cases, kinds and outcomes."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.page.names import case_anchor, kind_place, kind_title, meaning, outcome_word, short_name
from perfsuite.testing.run_files import HOSTILE_NAMES


@pytest.mark.parametrize("case_id", [*HOSTILE_NAMES, "phase/a-q8_0/siso/decode", "x % y"])
def test_an_anchor_holds_the_whole_id(case_id: str) -> None:
    """An anchor is of plain characters alone, and what it stands for can be read from it again."""
    anchor = case_anchor(case_id)
    assert re.fullmatch(r"case=[A-Za-z0-9/:@!$*+,;~._%-]*", anchor)
    assert unquote(anchor) == f"case={case_id}"


def test_an_anchor_of_half_a_character_can_be_written() -> None:
    """A name that UTF-8 cannot hold has an anchor nevertheless."""
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
