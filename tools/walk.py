#!/usr/bin/env python3
"""Lists the files that one decode sample passes in a real run, from the worker's record to the row of the terminal.

    tools/walk.py [PYTEST'S ARGUMENT ...]    # default: the phase decode on this machine, three replicates

A file is on the walk where one of its functions gives an object that holds the sample, or, before there is a sample,
the begin of a recorded decode step, or a text with the case's time. Files whose functions are given it and give nothing
of it are listed after them: they look at it, or write it down. Objects are searched to a depth of eight, after the run:
what is not frozen (a session, a log) may have been empty when a function was given it, and is not searched. It prints a
line a file, with the first function that held the sample there, in the order in which it came by.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

from perfsuite.records.events import EngineRecord, Phase
from perfsuite.units import format_ns

ROOT = Path(__file__).resolve().parent.parent / "perfsuite"
#: Objects that are kept of each function, which hold what they held when it was called.
_MOST_KEPT = 400
_DEPTH = 8
_OPTIONS = (
    *("--device=host", "-k", "test_phase and decode", "--baseline=off", "--perf-replicates=3", "--perf-report=off"),
    *("-p", "no:cacheprovider"),
)


class Passers:
    """What functions of the suite were given and gave back, in the order of their first call."""

    def __init__(self) -> None:
        self.taken: dict[CodeType, list[object]] = {}
        self.given: dict[CodeType, list[object]] = {}
        self._own: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, given: object) -> None:
        """Keep the arguments of a call, and what it returns (`sys.setprofile`)."""
        code = frame.f_code
        own = self._own.get(code)
        if own is None:
            own = self._own[code] = code.co_filename.startswith(str(ROOT)) and code.co_name != "<module>"
        if not own or event not in ("call", "return"):
            return
        taken, gave = self.taken.setdefault(code, []), self.given.setdefault(code, [])
        kept, found = (gave, [given]) if event == "return" else (taken, list(frame.f_locals.values()))
        if len(kept) < _MOST_KEPT:
            kept += (each for each in found if not isinstance(each, bool | type(None)))


def held(value: object, depth: int = _DEPTH) -> Iterator[object]:
    """Yield the numbers and arrays that an object holds."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        yield from (value[name] for name in value.dtype.names)
    elif isinstance(value, int) or (isinstance(value, np.ndarray) and value.dtype.kind in "iuf"):
        yield value
    elif depth and is_dataclass(value) and not isinstance(value, type) and _is_frozen(type(value)):
        for each in fields(value):
            yield from held(getattr(value, each.name, None), depth - 1)
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from held(each, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for each in value:
            yield from held(each, depth - 1)


def _is_frozen(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


def holds(value: object, wanted: set[int], known: dict[int, bool]) -> bool:
    """Whether an object holds one of the numbers; `known` says it of those that were searched."""
    if id(value) not in known:
        known[id(value)] = any(
            bool(np.isin(each, list(wanted)).any()) if isinstance(each, np.ndarray) else each in wanted
            for each in held(value)
        )
    return known[id(value)]


def decode_begins_ns(passers: Passers) -> set[int]:
    """Return when recorded decode steps began, in the records that functions gave."""
    given = (each for kept in passers.given.values() for each in kept if isinstance(each, EngineRecord))
    return {span.start_ns for record in given for span in record.spans if span.phase is Phase.DECODE}


def main(options: list[str]) -> int:
    """Run, and print the walk."""
    passers = Passers()
    with TemporaryDirectory() as folder:
        sys.setprofile(passers)
        try:
            status = pytest.main([*(options or _OPTIONS), f"--perf-dir={folder}"])
        finally:
            sys.setprofile(None)
        cases = json.loads(next(Path(folder).rglob("run.json")).read_text())["cases"]
    decode = next(case for case in cases if case["id"].endswith("/decode"))
    wanted = set(decode["samples_ns"]) | decode_begins_ns(passers)
    text = format_ns(int(median(decode["samples_ns"])))
    known: dict[int, bool] = {}
    passed: dict[str, str] = {}
    looked: dict[str, str] = {}
    for code, taken in passers.taken.items():
        place = Path(code.co_filename).relative_to(ROOT).as_posix()
        if any((isinstance(each, str) and text in each) or holds(each, wanted, known) for each in passers.given[code]):
            passed.setdefault(place, code.co_qualname)
        elif any(holds(each, wanted, known) for each in taken):
            looked.setdefault(place, code.co_qualname)
    for path, function in passed.items():
        print(f"{path:50} {function}")
    floors = Counter(path.partition("/")[0] for path in passed)
    print(f"{len(passed)} files:", ", ".join(f"{floor} {count}" for floor, count in floors.items()))
    print("\nlook at it, or write it down:")
    for path in looked.keys() - passed.keys():
        print(f"{path:50} {looked[path]}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
