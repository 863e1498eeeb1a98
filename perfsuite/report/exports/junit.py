"""Runs as a JUnit report: a suite for each run, a test for each case, the figures as properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias
from xml.etree import ElementTree

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.exports import Export
from perfsuite.report.run_writer import plain_case
from perfsuite.report.visible import without_controls
from perfsuite.report.words import engine_words

#: By name; what is not known is left out.
Properties: TypeAlias = Mapping[str, "str | int | float"]

_FIGURES = (
    *("outcome", "measured_ns", "tokens_per_s", "expected_ns", "floor_ns", "limit_ns", "baseline_ns"),
    *("change_ratio", "lower_ratio", "upper_ratio", "resolution_ratio", "reason"),
)


def case_properties(judgement: Judgement) -> Properties:
    """Return the properties of a case."""
    plain = plain_case(judgement)
    figures = {"case": plain["id"], **{name: plain[name] for name in _FIGURES}}
    return _written({f"perf_{name}": value for name, value in figures.items() if value is not None})


def run_properties(device: str, workload: str, subjects: Mapping[str, str], origin: RunOrigin) -> Properties:
    """Return the properties of all cases of a run; its subjects are what was measured, by group."""
    properties = {"perf_device": device, "perf_workload": workload}
    if subjects:
        properties["perf_engine"] = engine_words(subjects)
    if origin.run_id:
        properties["perf_run_id"] = origin.run_id
    if origin.commit is not None:
        properties["perf_commit"] = f"{origin.commit.sha}{'-dirty' if origin.commit.is_dirty else ''}"
    if origin.board is not None:
        properties["perf_board"] = f"{origin.board.identity} {origin.board.hostname}"
    return _written(properties)


def _written(properties: Properties) -> Properties:
    """Write controls out here, since pytest would write them its own way, and some as they are."""
    return {name: without_controls(value) if isinstance(value, str) else value for name, value in properties.items()}


def junit_text(runs: Sequence[RunFile]) -> str:
    r"""Return the report: what fails is a failure, what was not judged is skipped, and the rest has passed.

    A test's time is what the case measured. Controls, and what XML cannot hold, are written out: ``\x1b``.
    """
    root = ElementTree.Element("testsuites", name="perfsuite")
    for run in runs:
        root.append(_suite(run))
    ElementTree.indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(run: RunFile) -> ElementTree.Element:
    suite = ElementTree.Element(
        "testsuite",
        name=without_controls(f"perfsuite {run.workload}"),
        tests=str(len(run.judgements)),
        failures=str(sum(judgement.outcome.fails for judgement in run.judgements)),
        errors="0",
        skipped=str(sum(map(_is_skipped, run.judgements))),
        time=f"{sum(run.durations_s.values()):.3f}",
        timestamp=without_controls(run.started_at),
        hostname=without_controls(run.device),
    )
    suite.append(_properties(run_properties(run.device, run.workload, run.subjects, run.origin)))
    suite.extend(map(_case, run.judgements))
    return suite


def _case(judgement: Judgement) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=without_controls(f"perfsuite.{judgement.kind}"), name=without_controls(judgement.case_id)
    )
    if judgement.measured_ns is not None:
        case.set("time", f"{Decimal(judgement.measured_ns).scaleb(-9):f}")
    case.append(_properties(case_properties(judgement)))
    told = without_controls(f"{judgement.outcome.value}: {judgement.reason}")
    if judgement.outcome.fails:
        ElementTree.SubElement(case, "failure", type=f"perfsuite.{judgement.outcome.value}", message=told)
    elif _is_skipped(judgement):
        ElementTree.SubElement(case, "skipped", type=f"perfsuite.{judgement.outcome.value}", message=told)
    return case


def _is_skipped(judgement: Judgement) -> bool:
    """Whether the case counts as skipped, as in a run of pytest: a new case was measured, and has passed."""
    return not judgement.outcome.decides and judgement.outcome is not Outcome.NEW


def _properties(properties: Properties) -> ElementTree.Element:
    element = ElementTree.Element("properties")
    for name, value in properties.items():
        ElementTree.SubElement(element, "property", name=name, value=str(value))
    return element


EXPORTS = (Export(name="junit", summary="a JUnit report with the figures as properties", text=junit_text, place=2),)
