"""Every record of the suite: whatever it holds is read as it was written; what breaks a rule of its own is one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from inspect import isclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from perfsuite.device.lock_owner import LockOwner
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import IndependentRate
from perfsuite.measure import plan as plans
from perfsuite.measure.board.holding import Held
from perfsuite.measure.contention import Contention
from perfsuite.measure.engine import Engine
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.memory_timeline import MemoryWatch
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import pack, unpack
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.live import LiveRecord, from_line, to_line
from perfsuite.records.memory_timeline import MemoryTimeline
from perfsuite.records.tensor_layout import TensorLayout

from ..fuzz.executions import work_folder
from ..fuzz.readers import READERS, Form, seeds
from ..fuzz.refusals import ABSENT, REFUSALS

_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return what a type may hold, with the limits that the codec reads from it."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _limited(*arguments)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and ... not in arguments:
        return st.tuples(*map(values, arguments))
    if origin in (tuple, list):
        return st.lists(values(arguments[0]), max_size=3).map(origin)
    if isclass(origin) and issubclass(origin, Mapping):
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if is_dataclass(kind):
        return _built(kind)
    leaves = {int: _INTEGERS, float: _FLOATS, NoneType: st.none(), Path: st.text(max_size=9).map(Path)}
    return leaves[kind] if kind in leaves else st.from_type(kind)


def _limited(kind: Any, limits: Any) -> st.SearchStrategy[Any]:
    if kind is str:
        return st.text(min_size=limits.min_length or 0)
    if kind is int:
        return st.integers(limits.ge, limits.le)
    if kind is float:
        least = limits.gt if limits.ge is None else limits.ge
        return st.floats(least, limits.le, exclude_min=limits.gt is not None)
    inner = values(get_args(kind)[0])
    return st.lists(inner, min_size=limits.min_length or 0, max_size=3).map(tuple)


def _built(kind: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    known = {each.name: values(hints[each.name]) for each in fields(kind)}

    def made(given: dict[str, Any]) -> Any:
        try:
            return kind(**{**given, **FITTED.get(kind, lambda given: {})(given)})
        except (PerfsuiteError, ValueError):
            reject()

    return st.fixed_dictionaries(known).map(made)


def _ascending(given: dict[str, Any]) -> dict[str, Any]:
    levels = {each.working_set_bytes: each for each in given["bandwidths"]}
    return {"bandwidths": tuple(levels[size] for size in sorted(levels))}


def _within(given: dict[str, Any]) -> dict[str, Any]:
    return {**{name: value % 512 for name, value in given.items() if isinstance(value, int)}, "tensor_bytes": 8192}


#: Fields as they fit together, where a kind asks for more than its types say.
FITTED: Mapping[Any, Callable[[dict[str, Any]], dict[str, Any]]] = {
    Ceilings: _ascending,
    KernelRecord: lambda given: dict.fromkeys(("queued_ns", "submit_ns", "start_ns"), given["end_ns"]),
    MemoryRecord: lambda given: {"vram_bytes": given["vram_bytes"] and abs(given["vram_bytes"]) // 2},
    TensorLayout: _within,
}

#: Every kind that is made plain for a file or for another process; what the fuzzing writes is not here.
PLAIN = (
    *(CallTrace, Ceilings, Contention, Engine, Held, IndependentRate, KernelDuplication, KernelRecord, LockOwner),
    *(MemoryRecord, MemoryTimeline, MemoryWatch, OpenClDevice, TensorLayout),
)
PLANS = [each for each in vars(plans).values() if isclass(each) and issubclass(each, plans.Plan) and each != plans.Plan]

#: By kind, its way to bytes and back.
WAYS: Mapping[Any, Callable[[Any], Any]] = {
    **{kind: lambda record: type(record).from_plain(unpack(pack(record.to_plain()))) for kind in PLAIN},
    **{kind: lambda record: from_line(to_line(record).encode()) for kind in get_args(LiveRecord)},
    **{kind: lambda plan: plans.load_plan(plans.dump_plan(plan)) for kind in PLANS},
}


@pytest.mark.parametrize("kind", WAYS, ids=lambda kind: kind.__name__)
def test_what_is_written_is_read_back(kind: Any) -> None:
    @settings(max_examples=20)
    @given(values(kind))
    def is_read_back(record: Any) -> None:
        assert WAYS[kind](record) == record

    is_read_back()


def _change(plain: Any, place: tuple[str | int, ...], value: Any) -> None:
    *above, last = place
    for key in above:
        plain = plain[key]
    if value is ABSENT:
        del plain[last]
    else:
        plain[last] = value(plain[last]) if callable(value) else value


@pytest.mark.parametrize(("name", "place", "value", "told"), REFUSALS)
def test_what_breaks_a_rule_of_a_reader_is_one_line(
    name: str, place: tuple[str | int, ...], value: Any, told: str
) -> None:
    reader = READERS[name]
    content = reader.seal(next(iter(seeds(name).values())))
    is_json = reader.form is Form.JSON
    plain = json.loads(content) if is_json else unpack(content)
    _change(plain, place, value)
    with work_folder(reader) as path:
        path.write_bytes(json.dumps(plain).encode() if is_json else pack(plain))
        with pytest.raises((PerfsuiteError, reader.refusal)) as raised:
            reader.read(path)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
