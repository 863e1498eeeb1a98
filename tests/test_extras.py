"""What needs which extra: the base install runs without all of them, and names the one that is missing."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from perfsuite.errors import EXTRA_OF

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

#: Modules that import an extra's module at their top: nothing imports them at its own top but one of these.
NEED_EXTRAS = {
    "perfsuite.cases.test_shapes": "shapes",
    "perfsuite.experiments.shapes.hunt": "shapes",
    "perfsuite.experiments.shapes.strategies": "shapes",
    "perfsuite.measure.opencl_calls": "opencl",
}

RUN = "docs/examples/runs/slower"

#: Commands of the base install; each ends with 0.
BASE_COMMANDS = (
    "--help",
    "--version",
    "history --help",
    "plot --list",
    "devices list",
    "devices show host",
    "forecast --architecture llama-2-7b --variant bf16-int4-kv4 --prompt 64 --new-tokens 8 --tops 50 --bandwidth 256",
    f"report {RUN} -o FOLDER/report.html",
    f"export junit {RUN} -o FOLDER/run.xml",
    f"export csv {RUN} -o FOLDER/run.csv",
    "completion bash",
)

#: Commands that need an extra, and which.
EXTRA_COMMANDS = {
    "history runs": "history",
    "history sql SELECT": "history",
    f"export pytest-benchmark {RUN}": "benchmark",
    "history runs --history s3://bucket/prefix": "s3",
}

_WITHOUT_EXTRAS = """
import contextlib, io, json, sys
modules, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(modules))  # importing one of them fails, and nobody finds it
from perfsuite.cli import main
for command in commands:
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(command.split())
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([command, status, err.getvalue()]))
"""


def without_extras(commands: list[str], folder: Path) -> Iterator[tuple[str, int, str]]:
    asked = json.dumps([list(EXTRA_OF), [each.replace("FOLDER", str(folder)) for each in commands]])
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, asked]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    yield from (tuple(json.loads(line)) for line in done.stdout.splitlines())


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def imports_of(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that statements import when their module is imported: not those for type checkers alone."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) != "TYPE_CHECKING":
            yield from imports_of([*node.body, *node.orelse])


SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text("utf-8"))
    for path in (ROOT / "perfsuite").rglob("*.py")
}


def test_each_extra_is_one_of_pyproject_and_has_what_it_is_named_for() -> None:
    of_module = packages_distributions()
    for module, extra in EXTRA_OF.items():
        names = {name_of(each) for each in of_module.get(module, [])}
        assert not names or names & {name_of(each) for each in EXTRAS[extra]}, module
    assert set(EXTRA_OF.values()) | {"all"} == set(EXTRAS)


def test_a_module_imports_what_the_base_brings_unless_it_is_listed() -> None:
    """At its top, a module imports the standard library, the base's packages, or an extra for which it is listed."""
    base = {name_of(each) for each in PROJECT["dependencies"]}
    of_module = packages_distributions()
    found: dict[str, str] = {}
    for name, tree in SOURCES.items():
        for imported in imports_of(tree.body):
            top = imported.split(".")[0]
            if top in EXTRA_OF:
                found[name] = EXTRA_OF[top]
            elif top not in sys.stdlib_module_names and top != "perfsuite":
                assert base & {name_of(each) for each in of_module.get(top, [top])}, f"{name}: {imported}"
    assert found == NEED_EXTRAS


def test_what_needs_an_extra_is_imported_when_it_is_asked_for() -> None:
    for name, tree in SOURCES.items():
        if name not in NEED_EXTRAS:
            imported = {f"{each}." for each in imports_of(tree.body)}
            assert [each for each in NEED_EXTRAS if any(it.startswith(f"{each}.") for it in imported)] == [], name


def test_the_base_commands_need_no_extra(tmp_path: Path) -> None:
    """Without any extra a run is reported and exported, devices are listed and a workload is forecast."""
    ended = list(without_extras(list(BASE_COMMANDS), tmp_path))
    assert [each for each in ended if each[1]] == []
    assert len(ended) == len(BASE_COMMANDS)


def test_a_command_without_its_extra_names_it(tmp_path: Path) -> None:
    """A command that needs an extra ends with one line that has the remedy, and with 2."""
    ended = list(without_extras(list(EXTRA_COMMANDS), tmp_path))
    for (command, status, errors), extra in zip(ended, EXTRA_COMMANDS.values(), strict=True):
        assert (status, errors.count("\n")) == (2, 1), command
        assert f"which is not installed; run: pip install 'perfsuite[{extra}]'" in errors
