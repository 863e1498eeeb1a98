"""Scripts in processes of their own that see OpenCL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfsuite.measure.kernel_runtime import opencl_environment


def visible_opencl(folder: Path) -> Mapping[str, str]:
    """Return the variables of a process that sees OpenCL; `folder` is its cache."""
    return opencl_environment(folder, inherited=os.environ.get("OCL_ICD_VENDORS"))


def child_answer(environment: Mapping[str, str], script: str, *arguments: str) -> Any:
    """Run a script of Python with some variables more, and return the JSON of the last line that it prints."""
    child = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])
