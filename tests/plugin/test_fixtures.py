"""The fixture ``perf``: what it leaves in a JUnit report."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from perfsuite.plugin.fixtures import ReplayClock
from perfsuite.report.exports.junit import case_properties
from perfsuite.report.run_file import read_run_file
from tests.fake_device import FakeDevice


def test_pairs_of_readings_are_apart_by_the_samples() -> None:
    """Round after round, the second reading is later than the first by the sample of that round, in s."""
    clock = ReplayClock([2_000, 5])
    rounds = [(clock(), clock()) for _ in range(2)]
    assert [after - before for before, after in rounds] == pytest.approx([2e-6, 5e-9])


def test_a_clock_that_has_no_samples_left_stands_still() -> None:
    """Beyond the last sample time does not go on."""
    clock = ReplayClock([7])
    assert len({clock(), clock()}) == 2
    assert clock() == clock() == pytest.approx(7e-9)


Report = Callable[..., ElementTree.Element]


@pytest.fixture
def report(pytester: pytest.Pytester, fake_device: FakeDevice) -> Report:
    """Run the phases with a JUnit report; return its suite."""

    def run(*arguments: str) -> ElementTree.Element:
        told = ("--device=host", "--model=smollm2-135m-q8_0", "--perf-dir=run", "--junitxml=junit.xml")
        pytester.inline_run(*told, "-p", "no:cacheprovider", "-k", "test_phase", *arguments)
        (suite,) = ElementTree.parse(pytester.path / "junit.xml").getroot()
        return suite

    return run


def _properties(element: ElementTree.Element) -> dict[str | None, str | None]:
    return {each.get("name"): each.get("value") for each in element.findall("properties/property")}


def test_a_case_has_the_figures_of_the_run_as_properties(report: Report, pytester: pytest.Pytester) -> None:
    """Each case's properties are those of its judgement in run.json; what is not known is left out."""
    suite = report()
    judgements = {each.case_id: each for each in read_run_file(pytester.path / "run").judgements}
    cases = suite.findall("testcase")
    assert {_properties(case)["perf_case"] for case in cases} == set(judgements)
    for case in cases:
        properties = _properties(case)
        judgement = judgements[str(properties["perf_case"])]
        assert properties == {name: str(value) for name, value in case_properties(judgement).items()}
    assert "perf_baseline_ns" not in _properties(cases[0])


def test_a_suite_says_what_it_is_of_once(report: Report, pytester: pytest.Pytester) -> None:
    """The suite has device, workload and the id of the run, which is that of run.json."""
    suite = report()
    names = [each.get("name") for each in suite.findall("properties/property")]
    assert len(names) == len(set(names))
    run = json.loads((pytester.path / "run" / "run.json").read_text())
    properties = _properties(suite)
    assert properties["perf_device"] == "host"
    assert properties["perf_workload"] == run["workload"]
    assert properties.get("perf_run_id", "") == run["run_id"]
