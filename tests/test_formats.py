"""Files of every kind that the suite has ever written are read as they always were; ``data/formats`` has one of each.

Beside each lies what is read from it, as text with the types. A file here never changes: a new version adds another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.device.fingerprint import ENGINE
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.profile import find_profile
from perfsuite.device.setup.needs import last_answer, read_installed
from perfsuite.device.stability.restore_file import read_kept
from perfsuite.expectation.roofline.published import read_published
from perfsuite.experiments.certificate.certificate import read_trials
from perfsuite.experiments.fidelity.command_published import published_fidelity
from perfsuite.experiments.roofline.stored_run import read_roofline
from perfsuite.experiments.shapes.kept_files import read_examples
from perfsuite.experiments.shapes.policy_record import read_policy
from perfsuite.experiments.shapes.sweep_record import read_sweep
from perfsuite.experiments.study.harness_scores import read_harness_score
from perfsuite.experiments.study.plan_file import read_plan as read_study_plan
from perfsuite.measure.calibration_store import device_file, find_calibration
from perfsuite.measure.ceiling_store import stored_ceilings
from perfsuite.nightly.exit_file import read_exit
from perfsuite.nightly.night_state import NightOrigin, read_state
from perfsuite.nightly.plan_file import read_plan as read_night_plan
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.codec import unpack
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.live import from_line
from perfsuite.records.memory_timeline import MemoryTimeline
from perfsuite.records.observation import read_observation
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_file import read_trace
from perfsuite.report.llama_bench_export import read_measured_phases
from perfsuite.report.run_file import read_run_file
from perfsuite.verdict.baseline import read_baselines
from perfsuite.verdict.recorded_run import read_run

FORMATS = Path(__file__).parent / "data" / "formats"

Read = Callable[[Path], Any]


def _stored(folder: Path, source: Path, *identity: str | int) -> None:
    """Put a file where a store looks for that of such a device."""
    place = device_file(folder, {"soc": "A"}, *identity, board=None)
    place.parent.mkdir(parents=True)
    place.write_bytes(source.read_bytes())


def _calibration(path: Path, cache_dir: Path) -> Any:
    _stored(cache_dir / "calibrations", path, "build", 2)
    return find_calibration({"soc": "A"}, "build", 2, cache_dir)


def _ceilings(path: Path, cache_dir: Path) -> Any:
    _stored(cache_dir / "ceilings", path, 2)
    return stored_ceilings({"soc": "A"}, 2, cache_dir)


def _night(path: Path) -> Any:
    """Read the state of the night whose plan is beside it."""
    return read_state(path, read_night_plan(FORMATS / "night.toml"), NightOrigin(commit="0" * 40, suite_version="1"))


def _lines(path: Path) -> list[Any]:
    return [from_line(line) for line in path.read_text("utf-8").splitlines()]


def _plain(path: Path) -> Any:
    content = path.read_bytes()
    return unpack(content) if path.suffix == ".msgpack" else json.loads(content)


READERS: Mapping[str, Read] = {
    "run.json": read_run_file,
    "run-oldest.json": read_run_file,
    "baseline-2.json": read_baselines,
    "baseline-2-of-an-engine.json": read_baselines,
    "baseline-1.json": read_baselines,
    "observed": read_observation,
    "observed-oldest": read_observation,
    "trials.jsonl": read_trials,
    "trace.pstrace": read_trace,
    "policy.json": read_policy,
    "sweep.json": read_sweep,
    "shapes.json": read_examples,
    "roofline.json": read_roofline,
    "published.json": read_published,
    "fidelity.json": published_fidelity,
    "scores.json": lambda path: read_harness_score([path], "arc_easy", "acc_norm"),
    "scores-0.3.json": lambda path: read_harness_score([path], "arc_easy", "acc_norm,none"),
    "devices/fast-board.toml": lambda path: find_profile(path.stem, folders=[path.parent]),
    "installed.json": lambda path: read_installed(last_answer(path.read_text("utf-8")) or {}),
    "lock.json": lambda path: LockOwner.from_plain(_plain(path)),
    "restore.json": read_kept,
    "night": _night,
    "night/rubikpi/smollm2-135m-q8_0-siso": read_exit,
    "night.toml": read_night_plan,
    "study.toml": read_study_plan,
    "live.jsonl": _lines,
    "memory.json": lambda path: MemoryTimeline.from_plain(_plain(path)),
    "calls.json": lambda path: CallTrace.from_plain(_plain(path)),
    "duplication.json": lambda path: KernelDuplication.from_plain(_plain(path)),
    "layout.json": lambda path: TensorLayout.from_plain(_plain(path)),
}

READ_OTHERWISE: Mapping[str, Read] = {"run.json": read_run, "run-oldest.json": read_measured_phases}

STORED: Mapping[str, Callable[[Path, Path], Any]] = {
    "calibration.json": _calibration,
    "calibration-oldest.json": _calibration,
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


def is_as_before(name: str, read: Any) -> bool:
    """Say whether what was read is what the text says."""
    expected = json.loads((FORMATS / "read" / f"{name.replace('/', '-')}.json").read_text("utf-8"))
    assert shown(read) == expected
    return True


@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_as_it_always_was(name: str) -> None:
    """Every field of it, and what those are that older versions did not write."""
    assert is_as_before(name, READERS[name](FORMATS / name))


@pytest.mark.parametrize("name", READ_OTHERWISE)
def test_a_run_is_read_for_its_other_uses(name: str) -> None:
    """A run becomes a baseline's session, or the phases that are compared with another program's."""
    assert is_as_before(f"otherwise-{name}", READ_OTHERWISE[name](FORMATS / name))


@pytest.mark.parametrize("name", STORED)
def test_a_stored_file_is_read_as_it_always_was(name: str, tmp_path: Path) -> None:
    """What a machine keeps between runs is found and read."""
    assert is_as_before(name, STORED[name](FORMATS / name, tmp_path))


def test_the_engine_stays_out_of_a_fingerprint_of_before() -> None:
    """Older versions kept baselines apart by engine; they are one entry, with what each session measured."""
    (entry,) = read_baselines(FORMATS / "baseline-2-of-an-engine.json").entries
    assert ENGINE not in entry.fingerprint
    assert [session.engine_version for session in entry.sessions] == ["0.1", "0.2"]


def test_every_file_is_read() -> None:
    named = {*READERS, *STORED}
    there = {path.relative_to(FORMATS).as_posix() for path in FORMATS.iterdir() if path.name not in ("read", "devices")}
    assert there <= named
