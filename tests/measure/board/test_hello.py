"""Both ends have one suite, and the desk says who it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfsuite import __version__
from perfsuite.errors import LinkError
from perfsuite.measure.board.hello import Hello, asked_silence_s, own_versions, refusal, versions_complaint
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.plan import SCHEMA

CLAIM = Claim(name="pi", user="ada", host="desk", run_id="1", purpose="a test", wait_s=3.0)


def test_two_versions_are_named() -> None:
    assert versions_complaint(Hello(claim=CLAIM).to_plain(), own_versions()) is None
    told = versions_complaint(replace(Hello(claim=CLAIM), schema=99).to_plain(), own_versions())
    assert told is not None
    assert f"perfsuite {__version__} (plans of schema {SCHEMA}) there" in told
    assert f"perfsuite {__version__} (plans of schema 99) here" in told
    assert versions_complaint({}, own_versions()) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"claim": {"name": "pi"}},
        {"conditions": {"another": 1}},
        {"conditions": None},
        {"another": 1},
        {"silence_limit_s": "x"},
        {"silence_limit_s": float("nan")},
    ],
)
def test_a_hello_of_another_shape_is_one_error(other: dict[str, Any]) -> None:
    """Whatever is there in place of what is known, it is no `TypeError`."""
    with pytest.raises(LinkError, match=r"^a hello .*"):
        Hello.from_plain({**Hello(claim=CLAIM).to_plain(), **other})


def test_a_silence_is_a_time_that_can_be_waited_for() -> None:
    assert asked_silence_s({"silence_limit_s": 2}) == 2.0
    assert [asked_silence_s({"silence_limit_s": each}) for each in ("2", None, 0, -1.0, 1e300)] == [None] * 5


def test_a_refusal_by_the_same_version_says_so() -> None:
    """Two trees of one version are told apart from two versions; what is no version at all is reported, too."""
    desk = Hello(claim=CLAIM).to_plain()
    assert "though it calls itself the same" in refusal(desk, own_versions())
    assert "perfsuite 9 (plans" in refusal(desk, {"suite_version": "9"})
    assert "perfsuite None (plans" in refusal(desk, "garbage")
