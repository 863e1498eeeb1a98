"""What the functions of the shipped cases take: a case of each kind, or a statement about sweeps."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

#: The kind of case that each argument of a case function stands for.
CASE_KINDS = {
    "phase_case": "phase",
    "operator_case": "operator",
    "binding_case": "binding",
    "percentile_case": "percentile",
    "kernel_case": "kernel",
    "engine_kernel_case": "engine_kernel",
    "roofline_case": "roofline",
    "fidelity_case": "fidelity",
    "overhead_case": "overhead",
    "trace_case": "trace",
    "counted_case": "counted",
    "shape_kept": "shape-kept",
    "shape_hunt": "shape-hunt",
}

#: The argument for the cases of experiments that other wheels bring.
BROUGHT = "experiment_case"

#: The argument of a test of statements about sweeps.
STATEMENT = "roofline_statement"

#: The arguments that get cases or statements.
PARAMETERS = (*CASE_KINDS, BROUGHT, STATEMENT)

#: What a function gets where there is no case. An empty list is an error for who sets ``empty_parameter_set_mark``.
#: The mark keeps fixtures from running for it; with a device such a test is deselected.
NO_CASE = (pytest.param(None, id="no case", marks=pytest.mark.skip(reason="no case; needs --device")),)

#: The file of the cases of ``--perf-shapes``, whose import brings Hypothesis.
SHAPES_FILE = "test_shapes.py"


def cases_dir() -> Path:
    """Return the folder of the shipped cases, which is not imported."""
    spec = find_spec("perfsuite.cases")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
