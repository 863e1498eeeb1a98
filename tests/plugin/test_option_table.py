"""What pytest loads of the suite in each project, and what its table of options says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection

import pytest

from perfsuite.device.farm.request import DEFAULT_FARM_WAIT
from perfsuite.expectation.roofline.sweeps import SWEEPS
from perfsuite.experiments.shapes.request import HUNT_BUDGETS
from perfsuite.plugin import option_table
from perfsuite.verdict.allowance import DEFAULT_RESOLUTION_RATIO, DEFAULT_STEP_SHARE_RATIO
from perfsuite.workload.scenario import scenario_names
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation
from perfsuite.workload.shapes.shape_case import Subject

_LOADED = """
import sys
before = set(sys.modules)
import pytest
of_pytest = set(sys.modules)
import perfsuite.plugin
print(*(set(sys.modules) - of_pytest))
"""


def test_a_project_without_a_device_loads_the_options_alone() -> None:
    """pytest loads the plugin wherever it is installed: two modules, and nothing of anybody else's."""
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, timeout=120, check=True)
    own = {"perfsuite", "perfsuite.plugin", "perfsuite.plugin.option_table", "perfsuite.plugin.parameters"}
    assert set(done.stdout.split()) == own


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
