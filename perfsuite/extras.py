"""What the extras of the package bring: which module each part needs, and one line where it is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from perfsuite.errors import PerfsuiteError

#: By module, the extra of pyproject.toml that installs it.
EXTRA_OF = {
    "duckdb": "history",
    "hypothesis": "shapes",
    "labgrid": "farm",
    "obstore": "s3",
    "pyopencl": "opencl",
    "pytest_benchmark": "benchmark",
    "ziglang": "zig",
}


def lack_of(module: str) -> str | None:
    """Return what is missing and the command that installs it; None where the module is installed."""
    if find_spec(module) is not None:
        return None
    return f"needs {module}, which is not installed; run: pip install 'perfsuite[{EXTRA_OF[module]}]'"


def require(module: str, asked: str, error: type[PerfsuiteError] = PerfsuiteError) -> None:
    """Raise an error that names what was asked for where the module that it needs is not installed."""
    if lack := lack_of(module):
        raise error(f"{asked}: {lack}")
