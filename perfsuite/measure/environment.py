"""What the environment says: which engine, which lock, which OpenCL, and within which run.

Nothing that takes long to import is needed to ask it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine, find_engine

#: The variable by which a program that a command follows knows the command's run, so that it may use the device that
#: the command has.
RUN_ID_NAME = "PERFSUITE_RUN_ID"

#: The variable that names the llama.cpp to measure, where it is not the one of llama-cpp-python.
ENGINE_NAME = "LLAMA_CPP_LIB_PATH"

#: The variable that says where this machine's lock lies; runs with another one know nothing of each other.
LOCK_FOLDER_NAME = "PERFSUITE_LOCK_DIR"


def environment_engine() -> Engine:
    """Find the engine that the environment names by ``LLAMA_CPP_LIB_PATH``, else the packaged one.

    Raises `EngineError` where there is none there; the message names the variable.
    """
    named = os.environ.get(ENGINE_NAME)
    if not named:
        return find_engine()
    try:
        return find_engine(Path(named))
    except EngineError as error:
        raise EngineError(f"{ENGINE_NAME}: {error}") from error


def name_engine(folder: Path) -> None:
    """Let llama-cpp-python, which this process has not imported yet, take its libraries from a folder."""
    os.environ[ENGINE_NAME] = str(folder)


def environment_opencl_vendors() -> str | None:
    """Return where the environment says that OpenCL's .icd files are, if it says so."""
    return os.environ.get("OCL_ICD_VENDORS")


def environment_opencl_layers() -> str | None:
    """Return the OpenCL layers that the environment names, if it names any."""
    return os.environ.get("OPENCL_LAYERS")


def environment_lock_folder() -> str | None:
    """Return where the environment says that this machine's lock lies, so that tests do not contend with runs."""
    return os.environ.get(LOCK_FOLDER_NAME)


def environment_run_id() -> str | None:
    """Return the run within which this program was started, whose device it may use; None for one by itself."""
    return os.environ.get(RUN_ID_NAME)


#: Variables by which a build is another one: what compiles it, with which words, and where it looks for what it needs.
_OF_BUILDS = re.compile(
    r"CC|CXX|CPP|FC|AR|LD|NM|RANLIB|\w*FLAGS|\w*CPATH|\w*_INCLUDE_PATH|\w*LIBRARY_PATH|PKG_CONFIG\w*|CMAKE_\w+|GGML_\w+"
    r"|CCACHE_(?!DIR$)\w+|MKLROOT|(CUDA|HIP|ROCM|VULKAN|BLAS|OPENBLAS)_\w*(PATH|HOME|ROOT|DIR|SDK)"
)


def environment_of_builds() -> dict[str, str]:
    """Return what builds read of the environment."""
    return {name: value for name, value in sorted(os.environ.items()) if _OF_BUILDS.fullmatch(name)}


def program_environment(extra: Mapping[str, str], *, without: Collection[str] = ()) -> dict[str, str]:
    """Return this process's environment with some variables set, for a program that is none of the suite's."""
    return {name: value for name, value in {**os.environ, **extra}.items() if name not in without}
