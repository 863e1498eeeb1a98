"""One JUnit report of many, against the schema that CI systems read."""

from __future__ import annotations

from pathlib import Path

from junitparser import JUnitXml

from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.merged_junit import write_junit

from .conftest import cells, plan_of

SUITE = (
    '<testsuites><testsuite name="pytest" tests="2" failures="1" errors="0" skipped="0">'
    '<testcase name="x"/></testsuite></testsuites>'
)


def test_suites_are_named_for_their_cells_and_counted(tmp_path: Path) -> None:
    """What was not run, what broke with a reason that XML cannot hold, and a lost report are errors."""
    plan = plan_of(*cells("host", "good", "lost", "broke", "never"))
    (tmp_path / "host/good-siso").mkdir(parents=True)
    (tmp_path / "host/good-siso/junit.xml").write_text(SUITE)
    passed = CellEnd(ending=Ending.MEASURED, exit_code=0, seconds=1)
    broke = CellEnd(ending=Ending.BROKEN, exit_code=4, seconds=1, why="a\x1b[31m & <b>")
    ends = {"host/good-siso": passed, "host/lost-siso": passed, "host/broke-siso": broke}
    write_junit(tmp_path / "junit.xml", plan, tmp_path, ends)
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert [suite.name for suite in report] == [cell.key for cell in plan.cells]
    text = (tmp_path / "junit.xml").read_text()
    assert 'tests="5" failures="1" errors="3" skipped="0"' in text
    assert 'message="a#x1B[31m &amp; &lt;b&gt;"' in text
    assert 'message="was not run"' in text
