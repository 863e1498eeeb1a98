"""What pytest loads of the suite in each project, and what its table of options says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection

import pytest

from perfsuite import option_table
from perfsuite.device.farm.request import DEFAULT_FARM_WAIT
from perfsuite.expectation.roofline.sweeps import SWEEPS
from perfsuite.experiments.shapes.request import HUNT_BUDGETS
from perfsuite.verdict.allowance import DEFAULT_RESOLUTION_RATIO, DEFAULT_STEP_SHARE_RATIO
from perfsuite.workload.scenario import scenario_names
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation
from perfsuite.workload.shapes.shape_case import Subject
from tests.fake_device import STORED_MODEL, HostRuns

_LOADED = """
import sys
before = set(sys.modules)
import pytest
of_pytest = set(sys.modules)
import perfsuite.plugin
print(*(set(sys.modules) - of_pytest))
"""


def test_a_project_without_a_device_loads_the_options_alone() -> None:
    """pytest loads the plugin wherever it is installed: three modules, and nothing of anybody else's."""
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=120, check=True)
    own = {"", ".option_table", ".plugin", ".plugin.registration", ".plugin.parameters"}
    assert set(done.stdout.split()) == {f"perfsuite{each}" for each in own}


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        (option_table.SCENARIOS, scenario_names()),
        (option_table.SWEEPS, tuple(SWEEPS)),
        (option_table.SHAPE_OPERATIONS, tuple(each.value for each in Operation)),
        (option_table.SHAPE_SUBJECTS, tuple(each.value for each in Subject)),
        (option_table.SHAPE_TYPES, STORED_TYPES),
        (option_table.SHAPE_PROFILES, {name: budget.told for name, budget in HUNT_BUDGETS.items()}),
        (option_table.DEFAULT_FARM_WAIT, DEFAULT_FARM_WAIT),
        (option_table.DEFAULT_RESOLUTION_RATIO, DEFAULT_RESOLUTION_RATIO),
        (option_table.DEFAULT_STEP_SHARE_RATIO, DEFAULT_STEP_SHARE_RATIO),
    ],
)
def test_the_help_lists_what_the_suite_knows(shown: Collection[str], known: Collection[str]) -> None:
    """The table imports nothing, so that its lists are written out."""
    assert shown == known


_OTHER = """
import pytest

def pytest_addoption(parser):
    group = parser.getgroup("other")
    group.addoption("--device", choices=("phone", "tablet"))
    group.addoption("--threads", action="store_true")

@pytest.hookimpl(trylast=True)
def pytest_report_header(config):
    return f"other: {config.getoption('--device')}, {config.option.threads}"
"""

_GIVEN = (
    *("--device=tablet", "--threads", "--perf-device=host", "--perf-threads=1"),
    *(f"--model={STORED_MODEL}", "--perf-dir=run", "-p", "no:cacheprovider", "-k", "test_phase"),
)


@pytest.mark.parametrize("way", ["-p", "PYTEST_PLUGINS", "conftest.py"])
def test_a_short_name_is_left_to_the_plugin_that_has_it(
    runs: HostRuns, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Whichever of both plugins is loaded first, both have their values, and the header names the other names."""
    pytester = runs.pytester
    pytester.makepyfile(**{"conftest" if way == "conftest.py" else "others_plugin": _OTHER})
    pytester.syspathinsert()
    if way == "PYTEST_PLUGINS":
        monkeypatch.setenv(way, "others_plugin")
    result = pytester.runpytest_inprocess(*_GIVEN, *(("-p", "others_plugin") if way == "-p" else ()))
    assert result.ret == pytest.ExitCode.OK
    names = "another plugin has --device, --threads; perfsuite's is --perf-device, --perf-threads"
    result.stdout.fnmatch_lines_random([f"perfsuite: {names}", "other: tablet, True", "perfsuite: device host:*"])
    assert {"--perf-device=host", "--perf-threads=1", f"--model={STORED_MODEL}"} <= set(runs.file().origin.arguments)


def test_without_another_plugin_each_option_has_both_names(pytester: pytest.Pytester) -> None:
    """What is given by the last of both names counts, and the header says nothing."""
    config = pytester.parseconfig("--threads=2", "--perf-threads=3", "--perf-n-gen=1", "--n-gen=2")
    assert (config.getoption("--threads"), config.getoption("--perf-n-gen")) == (3, 2)
    result = pytester.runpytest_inprocess("--collect-only")
    result.stdout.no_fnmatch_line("*another plugin*")
