"""JUnit reports, as junitparser, a schema and an XML parser read them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import junitparser
import xmlschema
from hypothesis import given, settings

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports.junit import case_properties, junit_text
from perfsuite.report.visible import without_controls
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

from .conftest import WORDS, run_of

#: Of Jenkins' xUnit plugin, which is what pytest's family xunit2 follows.
SCHEMA = Path(__file__).parents[2] / "data" / "junit-10.xsd"

RUN = synthetic_run(names=HOSTILE_NAMES)


def _n(run: RunFile, *outcomes: Outcome) -> int:
    return sum(each.outcome in outcomes for each in run.judgements)


def test_junitparser_reads_the_counts_and_the_properties() -> None:
    """Counts of each suite are those of its cases; each case has its figures as properties."""
    report = junitparser.JUnitXml.fromstring(junit_text([RUN, synthetic_run(n_cases=7)]))
    first, second = report
    stated = first.tests, first.failures, first.errors, first.skipped
    first.update_statistics()
    assert stated == (first.tests, first.failures, first.errors, first.skipped)
    assert first.tests == len(RUN.judgements)
    assert first.failures == _n(RUN, Outcome.REGRESSED, Outcome.SLOW, Outcome.IMPOSSIBLE)
    assert first.skipped == _n(RUN, Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.SUSPECT, Outcome.INCONCLUSIVE)
    assert second.tests == 7
    (suite,) = junitparser.JUnitXml.fromstring(junit_text([RUN]))
    assert {each.name: each.value for each in suite.properties()}["perf_run_id"] == RUN.origin.run_id
    for case, judgement in zip(suite, RUN.judgements, strict=True):
        read = {each.name: each.value for each in case.child(junitparser.Properties)}
        assert read == {name: str(value) for name, value in case_properties(judgement).items()}


def test_a_report_keeps_to_the_schema_but_for_the_properties_of_cases() -> None:
    """The schema knows properties of suites alone; without those of cases, which pytest writes too, it is satisfied."""
    schema = xmlschema.XMLSchema(str(SCHEMA))
    report = ElementTree.fromstring(junit_text([RUN]))
    assert not schema.is_valid(report)
    for case in report.iter("testcase"):
        case.remove(case.find("properties"))  # type: ignore[arg-type]
    schema.validate(report)


@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_words_of_a_run_are_read_back(words: str) -> None:
    """Names and reasons are the same again, with control characters and what XML cannot hold written out."""
    report = ElementTree.fromstring(junit_text([run_of(words)]).encode())
    judgements = run_of(words).judgements
    for case, judgement in zip(report.iter("testcase"), judgements, strict=True):
        assert case.get("name") == without_controls(judgement.case_id)
        read = {each.get("name"): each.get("value") for each in case.iter("property")}
        assert read["perf_reason"] == without_controls(words)
