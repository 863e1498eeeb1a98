"""OpenMetrics text, as the parsers of Prometheus' Python client read it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics

from perfsuite.errors import PerfsuiteError
from perfsuite.records.run_origin import BoardName, RunOrigin
from perfsuite.report.exports.openmetrics import openmetrics_text
from perfsuite.report.visible import without_controls
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from .conftest import WORDS, run_of

RUN = synthetic_run(names=HOSTILE_NAMES)
PARSERS = {"openmetrics": openmetrics, "classic": classic}


def _families(text: str, parser: str) -> dict[str, Any]:
    return {each.name: each for each in PARSERS[parser].text_string_to_metric_families(text)}


def test_names_end_with_their_units_and_no_sample_has_a_time() -> None:
    """Each family has a help text and its unit; the textfile collector refuses timestamps."""
    families = _families(openmetrics_text([RUN]), "openmetrics")
    assert all(family.documentation for family in families.values())
    assert {name: family.unit for name, family in families.items()} == {
        name: next((unit for unit in ("seconds", "ratio", "joules") if name.endswith(f"_{unit}")), "")
        for name in families
    }
    assert all(sample.timestamp is None for family in families.values() for sample in family.samples)


def test_several_runs_share_their_families() -> None:
    """Runs of two devices are samples of one family; two of one device and workload are refused, and so are doubles."""
    other = replace(RUN, device="board")
    families = _families(openmetrics_text([RUN, other]), "openmetrics")
    devices = {each.labels["device"] for each in families["perfsuite_case_outcome"].samples}
    assert devices == {RUN.device, "board"}
    with pytest.raises(PerfsuiteError, match="two runs are of workload"):
        openmetrics_text([RUN, RUN])
    with pytest.raises(PerfsuiteError, match=r"has the case .* twice"):
        openmetrics_text([replace(RUN, judgements=(RUN.judgements[0], *RUN.judgements))])
    changed = [replace(RUN.judgements[0], change_ratio=value) for value in (float("inf"), float("-inf"), float("nan"))]
    runs = [replace(RUN, device=str(place), judgements=(each,)) for place, each in enumerate(changed)]
    samples = _families(openmetrics_text(runs), "openmetrics")["perfsuite_case_change_ratio"].samples
    assert [str(each.value) for each in samples] == ["inf", "-inf", "nan"]


@pytest.mark.long
@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_are_read_back(words: str) -> None:
    """Labels are the same again in both parsers, with control characters written out."""
    run = run_of(words)
    for parser in PARSERS:
        samples = _families(openmetrics_text([run]), parser)["perfsuite_case_outcome"].samples
        assert [each.labels["case"] for each in samples] == [_told(each.case_id) for each in run.judgements]
        assert {each.labels["device"] for each in samples} == {_told(words)}


def _told(words: str) -> str:
    return without_controls(words, kept="\n")


def test_two_names_that_become_one_are_one_series() -> None:
    first, second, *_ = RUN.judgements
    same = replace(RUN, judgements=(replace(first, case_id="a\x1b"), replace(second, case_id="a\\x1b")))
    with pytest.raises(PerfsuiteError, match=r"has the case .* twice"):
        openmetrics_text([same])


@pytest.mark.parametrize("parser", PARSERS)
def test_boards_of_a_kind_are_series_of_their_own(parser: str) -> None:
    """Two boards that were reached over a link may have a run each; two runs of one board are refused."""
    run = synthetic_run(n_cases=1)
    boards = [
        replace(run, origin=RunOrigin(board=BoardName(identity=name, hostname="shelf", is_linked=True)))
        for name in ("one", "two")
    ]
    samples = _families(openmetrics_text(boards), parser)["perfsuite_case_outcome"].samples
    assert [each.labels["board"] for each in samples] == ["one", "two"]
    with pytest.raises(PerfsuiteError, match="one series; name one"):
        openmetrics_text([boards[0], boards[0]])
