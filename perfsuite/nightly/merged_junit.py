"""The JUnit reports of all cells as one: a suite for each, and an error for each cell that broke."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import JUNIT_NAME, CellEnd, Ending
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.whole_file import write_whole_bytes

#: What XML 1.0 cannot hold in any spelling (its section 2.2, production Char).
_NO_XML = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_COUNTS = ("tests", "failures", "errors", "skipped")


def write_junit(path: Path, plan: NightPlan, night: Path, ends: Mapping[str, CellEnd]) -> None:
    """Write the merged report; a suite is named for its cell."""
    root = ElementTree.Element("testsuites", name="perfsuite nightly")
    for cell in plan.cells:
        root.extend(_suites(cell, night, ends.get(cell.key)))
    for count in _COUNTS:
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    write_whole_bytes(path, text + b"\n", PerfsuiteError)


def _suites(cell: Cell, night: Path, end: CellEnd | None) -> Iterator[ElementTree.Element]:
    try:
        found = list(ElementTree.parse(night / cell.key / JUNIT_NAME).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        found = []
    for suite in found if end is not None else ():
        suite.set("name", cell.key)
        yield suite
    if end is None or end.ending is Ending.BROKEN:
        yield _broken(cell, "was not run" if end is None else end.why)
    elif not found:
        yield _broken(cell, f"its {JUNIT_NAME} cannot be read")


def _broken(cell: Cell, why: str) -> ElementTree.Element:
    told = _NO_XML.sub(lambda found: f"#x{ord(found[0]):02X}", why)
    suite = ElementTree.Element("testsuite", name=cell.key, tests="1", failures="0", errors="1", skipped="0")
    case = ElementTree.SubElement(suite, "testcase", classname="perfsuite.nightly", name=cell.key)
    ElementTree.SubElement(case, "error", type="perfsuite.broken", message=told)
    return suite
