"""The OpenCL backend that ``--backend`` and ``--opencl-platform`` ask for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from perfsuite.device.profile import find_local_profile
from perfsuite.measure.launch import environment_engine

if TYPE_CHECKING:
    from perfsuite.measure.opencl_backend import OpenClBackend


def opencl_backend_of(options: argparse.Namespace) -> OpenClBackend | None:
    """Set up what the options ask for; `None` for the processor's backend.

    Raises
    ------
    PerfsuiteError
        There is no such platform, no backend for the engine, or a layer does not build.
    """
    if options.backend == "cpu":
        return None
    from perfsuite.measure.opencl_setup import set_up_opencl  # starts a process, and needs what few installs have

    platform = options.opencl_platform or find_local_profile(options.device).opencl_platform
    return set_up_opencl(environment_engine(), platform, Path(platformdirs.user_cache_dir("perfsuite")))
