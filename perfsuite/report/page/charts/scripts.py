"""The scripts that draw the figures, as a page holds them: without a network, and with their licences."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

from perfsuite.errors import PerfsuiteError

#: The interpreter is published as a module; a page of one file has no modules, but what it imports is in Vega.
_IMPORTED = "import { ascending, isString, DisallowedObjectProperties } from 'vega-util';"
_EXPORTED = "export { expression as expressionInterpreter };"
_SOURCE_MAP = "//# sourceMappingURL="


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScript:
    """A script as the page holds it inline."""

    name: str
    text: str

    @property
    def csp_source(self) -> str:
        """What allows this script and no other in ``script-src``, with its quotes."""
        digest = hashlib.sha256(self.text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def page_scripts() -> tuple[PageScript, ...]:
    """Return Vega, Vega-Lite, the interpreter of their expressions, and what draws the figures with them."""
    return (
        PageScript(name="vega", text=_licensed("vega", _vendored("vega.min.js"))),
        PageScript(name="vega-lite", text=_licensed("vega-lite", _vendored("vega-lite.min.js"))),
        PageScript(
            name="vega-interpreter", text=_licensed("vega-interpreter", _classic(_vendored("vega-interpreter.js")))
        ),
        PageScript(name="charts", text=resources.files(__package__).joinpath("charts.js").read_text("utf-8")),
    )


def _vendored(name: str) -> str:
    text = resources.files("perfsuite.report.page").joinpath("vendor", name).read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_SOURCE_MAP))


def _licensed(name: str, script: str) -> str:
    return f"/*! {name}\n{_vendored(f'LICENSE-{name}.txt').strip()}\n*/\n{script}"


def _classic(module: str) -> str:
    """Return the interpreter as a script that leaves ``vegaInterpreter`` behind.

    Raises PerfsuiteError where the module imports or exports other names than this knows.
    """
    if module.count(_IMPORTED) != 1 or module.count(_EXPORTED) != 1:
        raise PerfsuiteError("vega-interpreter.js: imports or exports other names; adapt perfsuite.report.page.charts")
    body = module.replace(_IMPORTED, "const { ascending, isString, DisallowedObjectProperties } = vega;")
    return f"(() => {{\n{body.replace(_EXPORTED, 'window.vegaInterpreter = expression;')}}})();\n"
