"""Files of every kind that the suite has ever written are read as they always were; ``data/formats`` has one of each.

Beside each lies what is read from it, as text with the types. A file here never changes: a new version adds another.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.experiments.shapes.kept import read_examples
from perfsuite.experiments.study.harness_scores import read_harness_score
from perfsuite.measure.ceiling_store import device_file, stored_ceilings
from perfsuite.records.fingerprint import ENGINE
from perfsuite.records.live import from_line
from perfsuite.verdict.baseline import read_baselines

from .fuzz.readers import FORMATS, READERS

Read = Callable[[Path], Any]

#: Readers that are called as the fuzzing calls them, by its names.
NAMED = (
    *("run", "baselines", "observation", "trials", "trace", "shape-policy", "shape-sweep", "roofline"),
    *("roofline-published", "fidelity-published", "lock", "night-state", "night-plan"),
    *("study", "memory", "calls", "duplication", "tensor-layout"),
)


def _seeds(reader: str) -> list[str]:
    return [each.removeprefix("formats/") for each in READERS[reader].seeds if each.startswith("formats/")]


#: By the name of what is read: the file, and how it is read.
FILES: dict[str, tuple[str, Read]] = {
    place.removesuffix(f"/{READERS[name].name}"): (place, READERS[name].read)
    for name in NAMED
    for place in _seeds(name)
}
FILES |= {
    "otherwise-run.json": ("run.json", READERS["run-recorded"].read),
    "otherwise-run-oldest.json": ("run-oldest.json", READERS["run-phases"].read),
    "live.jsonl": ("live.jsonl", lambda path: [from_line(line) for line in path.read_text("utf-8").splitlines()]),
    "shapes.json": ("shapes.json", read_examples),
    "scores.json": ("scores.json", READERS["lm-eval"].read),
    "scores-0.3.json": ("scores-0.3.json", lambda path: read_harness_score([path], "arc_easy", "acc_norm,none")),
    "devices/fast-board.toml": ("devices/fast-board.toml", READERS["device"].read),
}


def _ceilings(path: Path) -> Any:
    """Read them where a store looks for those of such a device."""
    place = device_file(path.parent / "ceilings", {"soc": "A"}, 2, board=None)
    place.parent.mkdir()
    shutil.copy(path, place)
    return stored_ceilings({"soc": "A"}, 2, path.parent)


STORED: Mapping[str, Read] = {
    "calibration.json": READERS["calibration"].read,
    "calibration-oldest.json": READERS["calibration"].read,
    "ceilings.json": _ceilings,
}


def shown(value: Any) -> Any:
    """Return a value as JSON that keeps its types apart: what is read must be the same, and of the same kind."""
    if is_dataclass(value):
        return {type(value).__name__: {each.name: shown(getattr(value, each.name)) for each in fields(value)}}
    if isinstance(value, Mapping):
        return {repr(name): shown(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return {f"{value.dtype.str} {value.shape}": repr(value.tolist())}
    if isinstance(value, Enum):
        return f"{type(value).__name__} {value.value!r}"
    if isinstance(value, tuple | list) and any(map(_is_tree, value)):
        return [type(value).__name__, *map(shown, value)]
    return repr(value).replace(str(FORMATS), "FORMATS")


def _is_tree(value: Any) -> bool:
    return is_dataclass(value) or isinstance(value, Mapping | tuple | list | Enum)


def expected(name: str) -> Any:
    return json.loads((FORMATS / "read" / f"{name.replace('/', '-')}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_it_always_was(name: str) -> None:
    """Every field of it, and what those are that older versions did not write; a run for its other uses, too."""
    place, read = FILES[name]
    assert shown(read(FORMATS / place)) == expected(name)


@pytest.mark.parametrize("name", STORED)
def test_a_stored_file_is_read_as_it_always_was(name: str, tmp_path: Path) -> None:
    """What a machine keeps between runs is found and read."""
    shutil.copy(FORMATS / name, tmp_path)
    assert shown(STORED[name](tmp_path / name)) == expected(name)


def test_the_engine_stays_out_of_a_fingerprint_of_before() -> None:
    """Older versions kept baselines apart by engine; they are one entry, with what each session measured."""
    (entry,) = read_baselines(FORMATS / "baseline-2-of-an-engine.json").entries
    assert ENGINE not in entry.fingerprint
    assert [session.engine_version for session in entry.sessions] == ["0.1", "0.2"]


def test_every_file_is_read() -> None:
    named = {*STORED, *(place.partition("/")[0] for place, _ in FILES.values())}
    assert {path.name for path in FORMATS.iterdir() if path.name != "read"} == named
