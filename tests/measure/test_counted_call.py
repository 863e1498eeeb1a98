"""A function is counted in a process of its own: what it may be, what it did, and how it may fail."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure.counted_call import count_call, counted_call
from perfsuite.measure.counting import CountingTool, build_counting_tool
from perfsuite.records.counts import Counts

_FUNCTIONS = """
import os
import sys

def made(n):
    return [bytearray(1000) for _ in range(n)]

def forked(n):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return made(n)

def printed(n):
    print("text" * 1000, flush=True)
    return made(n)

def raised():
    raise ValueError("no such\\nmodel")

def ended():
    sys.exit(3)

def left():
    print("the last words", file=sys.stderr, flush=True)
    os._exit(3)

def aborted():
    os.abort()

def endless():
    while True:
        pass
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "counted_functions.py").write_text(_FUNCTIONS)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("counted_functions")
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def tool() -> CountingTool:
    try:
        return build_counting_tool(user_cache())
    except NativeBuildError as error:
        if "does not build" in str(error):
            raise
        pytest.skip(str(error))


def counted(functions: ModuleType, tool: CountingTool, name: str, *arguments: object, limit_s: float = 300.0) -> Counts:
    return count_call(counted_call(getattr(functions, name), arguments, functions), tool, limit_s=limit_s)


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        pytest.param(lambda: 1, (), "another process cannot have the call: .*lambda.*; give a function", id="lambda"),
        pytest.param(sorted, ((i for i in range(3)),), "'generator' object; give a function", id="generator"),
    ],
)
def test_what_another_process_cannot_call_is_refused(
    function: object, arguments: tuple[object, ...], says: str, functions: ModuleType
) -> None:
    with pytest.raises(MeasurementError, match=says):
        counted_call(function, arguments, functions)  # type: ignore[arg-type]


@pytest.mark.long
def test_a_call_does_the_same_in_each_process(functions: ModuleType, tool: CountingTool) -> None:
    """To the instruction; one object more is an allocation more, and what it prints or forks disturbs nothing."""
    first = counted(functions, tool, "made", 100)
    assert counted(functions, tool, "made", 100) == first
    more = counted(functions, tool, "made", 101)
    assert more.allocations - first.allocations in (2, 3)  # the object, its bytes, and now and then a longer list
    assert more.bytes_allocated > first.bytes_allocated + 1000
    assert counted(functions, tool, "printed", 100).allocations > first.allocations
    assert counted(functions, tool, "forked", 100).instructions > first.instructions


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raised", r"^it raised ValueError: no such model \(counted_functions\.py:\d+\)$"),
        ("ended", r"^it raised SystemExit: 3 \(counted_functions\.py:\d+\)$"),
        ("left", "^it ended its process with status 3: the last words$"),
        ("aborted", "^it ended its process by SIGABRT: "),
    ],
)
def test_a_call_that_fails_says_how(functions: ModuleType, tool: CountingTool, name: str, says: str) -> None:
    with pytest.raises(MeasurementError, match=says):
        counted(functions, tool, name)


@pytest.mark.long
def test_a_call_that_does_not_end_is_stopped(functions: ModuleType, tool: CountingTool) -> None:
    with pytest.raises(MeasurementError, match=r"was still running after 2 s, .*; count less, or give limit_s"):
        counted(functions, tool, "endless", limit_s=2.0)
