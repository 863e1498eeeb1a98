"""The fixture ``perf``: what it leaves in a JUnit report."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from perfsuite.records.run_file import read_run_file
from perfsuite.report.exports.junit import case_properties
from tests.fake_device import FakeDevice


def test_suite_and_cases_have_the_figures_of_the_run_as_properties(
    pytester: pytest.Pytester, fake_device: FakeDevice
) -> None:
    """Each case's are those of its judgement in run.json; the suite has device, workload and the id of the run."""
    told = ("--device=host", "--model=smollm2-135m-q8_0", "--perf-dir=run", "--junitxml=junit.xml")
    pytester.inline_run(*told, "-p", "no:cacheprovider", "-k", "test_phase")
    (suite,) = ElementTree.parse(pytester.path / "junit.xml").getroot()
    run = read_run_file(pytester.path / "run")
    of_suite, *of_cases = (
        [(each.get("name"), each.get("value")) for each in element.findall("properties/property")]
        for element in (suite, *suite.findall("testcase"))
    )
    expected = ({name: str(value) for name, value in case_properties(each).items()} for each in run.judgements)
    by_case = {each["perf_case"]: each for each in expected}
    assert {properties["perf_case"]: properties for properties in map(dict, of_cases)} == by_case
    assert "perf_baseline_ns" not in dict(of_cases[0])
    stated = dict(of_suite)
    assert len(stated) == len(of_suite)
    assert (stated["perf_device"], stated["perf_workload"]) == ("host", run.workload)
    assert stated["perf_run_id"] == run.origin.run_id
