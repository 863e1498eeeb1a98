"""Processes that see OpenCL."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from perfsuite.measure.kernel_runtime import opencl_environment


def visible_opencl(folder: Path) -> Mapping[str, str]:
    """Return the variables of a process that sees OpenCL; `folder` is its cache."""
    return opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS"))
