"""The scripts of the page, and those among them that are not the suite's own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

import perfsuite.report.page
from perfsuite.errors import PerfsuiteError
from perfsuite.report.page.charts import page_scripts, scripts

VENDOR = Path(perfsuite.report.page.__file__).parent / "vendor"
VERSIONS = json.loads((VENDOR / "VERSIONS.json").read_text("utf-8"))
FILES = {name: file["sha256"] for package in VERSIONS.values() for name, file in package["files"].items()}


@pytest.mark.parametrize("name", FILES)
def test_a_vendored_file_is_as_it_was_published(name: str) -> None:
    """Its hash is that of VERSIONS.json, which tools/vendor_charts.sh compares with the registry's."""
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == FILES[name]


def test_nothing_else_is_vendored() -> None:
    """Every file has a hash, and every package its licence."""
    assert {path.name for path in VENDOR.iterdir()} == {*FILES, "VERSIONS.json"}
    assert all(any(name.startswith("LICENSE") for name in package["files"]) for package in VERSIONS.values())


def test_foreign_scripts_carry_their_versions_and_licences() -> None:
    """At their heads; none holds what HTML would read as its end, and none names a source map."""
    texts = {script.name: script.text for script in page_scripts()}
    assert f'version="{VERSIONS["vega"]["version"]}"' in texts["vega"]
    assert f'"{VERSIONS["vega-lite"]["version"]}"' in texts["vega-lite"]
    names = [script.name for script in page_scripts()]
    assert names == ["vega", "vega-lite", "vega-interpreter", "charts"]
    for script in page_scripts()[:3]:
        assert "University of Washington Interactive Data Lab" in script.text.partition("*/")[0]
    for script in page_scripts():
        assert not re.search(r"</script|<!--|sourceMappingURL", script.text, re.IGNORECASE)


def test_the_scripts_fit_a_page_that_trusts_no_other() -> None:
    """Its hash allows a script; the interpreter is a classic one, and the suite's own writes no markup."""
    script = page_scripts()[-1]
    digest = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
    assert script.csp_source == f"'sha256-{digest}'"
    text = next(script.text for script in page_scripts() if script.name == "vega-interpreter")
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    assert "window.vegaInterpreter = expression;" in text
    with pytest.raises(PerfsuiteError, match="other names"):
        scripts._classic("export default 1;")
    text = page_scripts()[-1].text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text)
