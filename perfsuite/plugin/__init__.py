"""The pytest plugin: what pytest loads in each project. The rest is loaded where ``--device`` is given."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from perfsuite.plugin.option_table import (
    MARKER_LINE,
    TAKEN_KEY,
    add_options,
    add_short_names,
    given_options,
    own_name,
    usable_name,
)
from perfsuite.plugin.parameters import NO_CASE, PARAMETERS, SHAPES_FILE, cases_dir

if TYPE_CHECKING:
    from perfsuite.plugin.fixtures import Perf


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: Sequence[str]
) -> Generator[None, object, object]:
    """Register short names of the options once every plugin and conftest has registered its own."""
    try:
        return (yield)
    finally:
        early_config.stash[TAKEN_KEY] = add_short_names(parser, args)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and what a device needs; pytest calls that at once."""
    config.addinivalue_line("markers", MARKER_LINE)
    if config.getoption("--perf-device"):
        _register_rest(config.pluginmanager)
    elif given := given_options(config):
        raise pytest.UsageError(f"{given[0]}: on which device? Give {usable_name(config, '--device')}=NAME as well")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the options that another plugin has by their short names."""
    taken = config.stash.get(TAKEN_KEY, ())
    own = ", ".join(map(own_name, taken))
    return [f"perfsuite: another plugin has {', '.join(taken)}; perfsuite's is {own}"] if taken else []


def _register_rest(manager: pytest.PytestPluginManager) -> None:
    from perfsuite.device.end_requests import signals_held_off

    with signals_held_off():  # libraries that are imported here start threads
        from perfsuite.plugin import hooks, run_end
    for each in (run_end, hooks):
        manager.register(each, each.__name__)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the file of the hunts for shapes where none was asked for."""
    if collection_path.name != SHAPES_FILE or collection_path.parent != cases_dir():
        return None
    return None if config.getoption("--perf-device") and config.getoption("--perf-shapes") else True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leave the functions of the shipped cases without a case where there is no device."""
    if not metafunc.config.getoption("--perf-device"):
        for argument in PARAMETERS:
            if argument in metafunc.fixturenames:
                metafunc.parametrize(argument, NO_CASE)


@pytest.fixture
def perf(request: pytest.FixtureRequest) -> Perf:
    """Judge performance cases; needs ``--device``."""
    if not request.config.getoption("--perf-device"):
        name = usable_name(request.config, "--device")
        pytest.skip(f"performance cases need {name}=NAME, such as {name}=host")
    from perfsuite.plugin.fixtures import perf_of

    return perf_of(request)
