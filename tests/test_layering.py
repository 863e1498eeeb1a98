"""The direction of the imports, and who alone may touch pytest, native libraries and the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: From the roof to the ground: a place imports from lower floors only, and never from a neighbour on its own.
FLOORS = (
    {"plugin", "cli", "cases", "testing"},
    {"experiments"},
    {"verdict", "report", "nightly"},
    {"expectation", "measure", "trace"},
    {"workload", "device"},
    {"records"},
    {"errors", "units"},
    {"option_table"},
)
LEVEL = {place: level for level, floor in enumerate(FLOORS) for place in floor}

#: Imports along a floor: the record of the ceilings is written by those who measure them, and the shipped cases are
#: tests that use the plugin's fixture.
ALONG_THE_FLOOR = {("measure", "expectation"), ("cases", "plugin")}

#: What a verdict is computed of: records, and nothing that measures, plans or forecasts.
OPEN_TO = {"verdict": {"records", "errors", "units"}}

PYTEST_USERS = {"plugin", "cases"}
#: The second asks the C library alone, which every process has.
LIBRARY_LOADERS = {"perfsuite.measure.native", "perfsuite.device.process_start"}
ENVIRONMENT_READERS = {"perfsuite.measure.worker", "perfsuite.measure.environment"}

LOADING_CALLS = {
    *(f"ctypes.{name}" for name in ("CDLL", "PyDLL", "cdll.LoadLibrary", "pydll.LoadLibrary")),
    "numpy.ctypeslib.load_library",
}
ENVIRONMENT_NAMES = {f"os.{name}" for name in ("environ", "environb", "getenv", "getenvb", "putenv", "unsetenv")}


class Module(NamedTuple):
    """A parsed module: its dotted name, whether it is a package's ``__init__``, its tree."""

    name: str
    is_package: bool
    tree: ast.Module

    @property
    def place(self) -> str:
        """The first name below ``perfsuite``: what has a floor; empty for the root package itself."""
        return place_of(self.name)


def module(source: str, name: str, *, is_package: bool = False) -> Module:
    return Module(name, is_package, ast.parse(source))


def place_of(name: str) -> str:
    """``perfsuite.measure.native`` is in ``measure``."""
    return name.partition(".")[2].partition(".")[0]


def imported_names(module: Module) -> Iterator[tuple[int, str]]:
    """Every imported dotted name with its line: at the top, in functions, relative, and through import_module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute_origin(module, node)
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}:
            literals = (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))
            yield from ((node.lineno, str(name)) for name in literals)


def absolute_origin(module: Module, node: ast.ImportFrom) -> str:
    """What a ``from`` statement imports from, with the dots of a relative import resolved."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*base, *filter(None, [node.module])])


def dotted_uses(module: Module) -> Iterator[tuple[int, str, bool]]:
    """Every use of a dotted name, aliases resolved: its line, the full name, and whether it is called."""
    aliases = dict(aliased_names(module))
    called = {id(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            head, *tail = ast.unparse(node).split(".")
            yield node.lineno, ".".join([aliases.get(head, head), *tail]), id(node) in called


def aliased_names(module: Module) -> Iterator[tuple[str, str]]:
    """What each imported name stands for: ``import numpy as np`` gives ``('np', 'numpy')``."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute_origin(module, node)
            yield from ((alias.asname or alias.name, f"{origin}.{alias.name}") for alias in node.names)


def climbs(module: Module, name: str) -> bool:
    """Whether an import does not go down: upwards, along the floor, or from a place that has no floor."""
    place = place_of(name)
    if name.split(".")[0] != "perfsuite" or (place == "cli" and is_command(module.name)):
        return False
    return not may_import(module.place, place)


def may_import(place: str, other: str) -> bool:
    """Whether a module in ``place`` may import from ``other``; the root package is open to all and imports nothing."""
    if place == other or (place, other) in ALONG_THE_FLOOR:
        return True
    if place in OPEN_TO:
        return other in OPEN_TO[place]
    if other not in LEVEL:
        return other.startswith("__")
    return place in LEVEL and LEVEL[place] < LEVEL[other]


def takes_pytest(module: Module, name: str) -> bool:
    return name.split(".")[0] in {"pytest", "_pytest"} and module.place not in PYTEST_USERS


def is_command(name: str) -> bool:
    """Whether a module is the command of an experiment: ``command.py`` in its folder, or one beside it."""
    parts = name.split(".")
    return parts[1:2] == ["experiments"] and len(parts) > 3 and parts[3].partition("_")[0] == "command"


def crosses_experiments(module: Module, name: str) -> bool:
    """Whether one experiment imports from another; what two of them need is beside their folders."""
    own = experiment_of(module.name)
    return own != "" and experiment_of(name) not in {"", own}


def experiment_of(name: str) -> str:
    """Return the folder of the experiment that a module is of; empty for what several share."""
    parts = name.split(".")[:3]
    is_below = len(parts) == 3 and parts[:2] == ["perfsuite", "experiments"]
    return parts[2] if is_below and ROOT.joinpath(*parts).is_dir() else ""


def takes_argparse(module: Module, name: str) -> bool:
    """The command line, the commands of experiments, and the plugin's options alone may."""
    return name.split(".")[0] == "argparse" and module.place not in {"cli", "plugin"} and not is_command(module.name)


def breaches(module: Module) -> Iterator[str]:
    """Imports that a module must not have, libraries that it must not load, and an environment that it must not use."""
    for line, name in imported_names(module):
        if any(rule(module, name) for rule in (climbs, takes_pytest, crosses_experiments, takes_argparse)):
            yield f"{module.name}:{line}: imports {name}"
    for line, name, called in dotted_uses(module):
        if called and name in LOADING_CALLS and module.name not in LIBRARY_LOADERS:
            yield f"{module.name}:{line}: calls {name}"
        if name in ENVIRONMENT_NAMES and module.name not in ENVIRONMENT_READERS:
            yield f"{module.name}:{line}: uses {name}"


def suite_modules() -> Iterator[Module]:
    """All modules of the package, as the checkout holds them."""
    for path in sorted((ROOT / "perfsuite").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield module(path.read_text(encoding="utf-8"), name, is_package=is_package)


def test_the_suite_keeps_the_rules() -> None:
    """No module of the suite breaks one, and every module and package right below perfsuite stands on a floor."""
    modules = list(suite_modules())
    assert [breach for module in modules for breach in breaches(module)] == []
    assert {module.place for module in modules} - {"", "__main__"} - LEVEL.keys() == set()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("verdict.compare", "import perfsuite.plugin"),
        ("expectation.graph", "def late():\n    from perfsuite import trace"),
        ("expectation.graph", "import importlib\nimportlib.import_module('perfsuite.measure.plan')"),
        ("workload.scenario", "from ..device import profile"),
        ("verdict.compare", "from perfsuite.expectation.cases import phase_cases"),
        ("verdict.compare", "from _pytest.config import Config"),
        ("measure.llama", "import ctypes as c\nc.cdll.LoadLibrary('x.so')"),
        ("measure.llama", "from ctypes import CDLL as Library\nLibrary('x.so')"),
        ("device.profile", "import os as system\nsystem.getenv('A')"),
        ("experiments.fidelity.measurement", "from perfsuite.experiments.study import joined"),
        ("experiments.fidelity.measurement", "import argparse"),
    ],
)
def test_a_breach_is_found_however_it_is_written(name: str, source: str) -> None:
    assert len(list(breaches(module(source, f"perfsuite.{name}")))) == 1
