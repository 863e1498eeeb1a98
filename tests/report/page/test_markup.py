"""Text as the templates place it."""

from __future__ import annotations

import re

import pytest
from markupsafe import escape

from perfsuite.report.page.markup import as_command, as_name, as_sentence
from perfsuite.report.visible import visible
from perfsuite.testing.run_files import HOSTILE_NAMES


def text_within(markup: str) -> str:
    """What is read of a piece of markup, before its entities are."""
    return re.sub(r"<[^>]+>", "", markup)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("is 15.5 % slower", "is 15.5\u00a0% slower"),
        ("5.89 ms, 10 pairs", "5.89\u00a0ms, 10 pairs"),
        ("× 20 of 3 GiB at 58.0 GB/s", "×\u00a020 of 3\u00a0GiB at 58.0\u00a0GB/s"),
        ("3 steps", "3 steps"),
    ],
)
def test_a_figure_stays_with_its_unit(text: str, whole: str) -> None:
    """No line ends between them."""
    assert as_sentence(text) == whole


def test_an_option_stays_in_one_piece() -> None:
    """No line ends behind its hyphens, in advice and in commands; what is copied is the command."""
    told = "pytest --device=host -k 'a-b' --perf-budget 60s"
    for shown in (as_sentence(told), as_command(told)):
        assert re.findall(r'<span class="whole">([^<]*)</span>', shown) == ["--device", "-k", "--perf-budget"]
    assert text_within(as_command(told)) == told.replace("'", "&#39;")


def test_a_name_may_be_broken_at_its_joints() -> None:
    """After a stroke and an underscore, and nowhere else."""
    assert as_name("prefill/ffn_inp") == "prefill/<wbr>ffn_<wbr>inp"
    assert as_name("a-b/") == "a-b/"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_stay_text(name: str) -> None:
    """Nothing but the suite's own elements is in the markup, whatever the name holds."""
    for shown in (as_name(name), as_command(name), as_sentence(name)):
        assert set(re.findall(r"<[^>]*>", shown)) <= {"<wbr>", '<span class="whole">', "</span>"}
    assert text_within(as_name(name)) == str(escape(visible(name)))
