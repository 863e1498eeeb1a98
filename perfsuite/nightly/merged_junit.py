"""The JUnit reports of all cells as one: a suite for each, and an error for each cell that broke."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import JUNIT_NAME, CellEnd, Ending
from perfsuite.nightly.night_plan import Cell, NightPlan
from perfsuite.records.whole_file import write_whole_binary

#: What XML 1.0 cannot hold in any spelling (its section 2.2, production Char).
_NO_XML = re.compile("[^\t\n\r\x20-\x7e\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_COUNTS = ("tests", "failures", "errors", "skipped")


#: Longer than the line that has the counts, of as many digits as there may be.
_HEAD_BYTES = 256


def write_junit(path: Path, plan: NightPlan, night: Path, ends: Mapping[str, CellEnd]) -> None:
    """Write the merged report; a suite is named for its cell. No more than one cell's is in memory."""

    def fill(out: BinaryIO) -> None:
        totals: Counter[str] = Counter()
        out.write(_head(totals))
        for cell in plan.cells:
            for suite in _suites(cell, night, ends.get(cell.key)):
                totals.update({count: int(suite.get(count, 0)) for count in _COUNTS})
                suite.tail = None
                ElementTree.indent(suite, " ", level=1)
                out.write(b" " + ElementTree.tostring(suite, encoding="utf-8", xml_declaration=False) + b"\n")
        out.write(b"</testsuites>\n")
        out.seek(0)
        out.write(_head(totals))

    write_whole_binary(path, fill, PerfsuiteError)


def _head(totals: Mapping[str, int]) -> bytes:
    """Return the first lines, as long for one count as for another: XML takes any blanks before the bracket."""
    counted = " ".join(f'{count}="{totals[count]}"' for count in _COUNTS)
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="perfsuite nightly" {counted}'
    return f"{text:<{_HEAD_BYTES}}>\n".encode()


def _suites(cell: Cell, night: Path, end: CellEnd | None) -> Iterator[ElementTree.Element]:
    if end is None:
        yield _broken(cell, "was not run")
        return
    try:
        parsed = ElementTree.parse(night / cell.key / JUNIT_NAME)  # nosec B314  # the night's own
        found = list(parsed.getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        found = []
    for suite in found:
        suite.set("name", cell.key)
        yield suite
    if end.ending is Ending.BROKEN:
        yield _broken(cell, end.why)
    elif not found:
        yield _broken(cell, f"its {JUNIT_NAME} cannot be read")


def _broken(cell: Cell, why: str) -> ElementTree.Element:
    told = _NO_XML.sub(lambda found: f"#x{ord(found[0]):02X}", why)
    suite = ElementTree.Element("testsuite", name=cell.key, tests="1", failures="0", errors="1", skipped="0")
    case = ElementTree.SubElement(suite, "testcase", classname="perfsuite.nightly", name=cell.key)
    ElementTree.SubElement(case, "error", type="perfsuite.broken", message=told)
    return suite
