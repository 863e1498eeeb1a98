"""What makes two measurements comparable."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.device.fingerprint import clock_conditions, governor, host_fingerprint
from perfsuite.device.machine import default_threads, usable_threads
from perfsuite.records.fingerprint import asked_fields, differences, machine_fields, without_engine
from tests.sys_trees import SMALL_CORES_OFF, UNREADABLE, plant, put


@pytest.mark.parametrize(
    ("n_usable", "n_physical", "n_threads"), [(8, 4, 4), (2, 4, 2), (4, 4, 4), (8, None, 8), (1, 1, 1)]
)
def test_each_physical_core_that_is_usable_has_a_thread(
    monkeypatch: pytest.MonkeyPatch, n_usable: int, n_physical: int | None, n_threads: int
) -> None:
    """Two threads of one core share its arithmetic; where cores are not known, usable processors count."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(n_usable)))
    monkeypatch.setattr("psutil.cpu_count", lambda logical: None if logical else n_physical)
    assert default_threads() == n_threads


@pytest.mark.parametrize("n_usable", [1, 3, 64])
def test_usable_processors_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch, n_usable: int) -> None:
    """What the process may not run on does not count, and hardware threads do."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(n_usable)))
    monkeypatch.setattr("psutil.cpu_count", lambda logical: 2)
    assert usable_threads() == n_usable


CPUINFO = "processor\t: 0\nmodel name\t: A Processor @ 2 GHz\ncpu family\t: 6\nmodel\t\t: 85\nflags\t: a b\n"

_FINGERPRINTS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"))


def root(folder: Path, **files: str) -> Path:
    places = {"cpuinfo": "proc/cpuinfo", "tree": "proc/device-tree/model"}
    places["governor"] = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    for name, text in files.items():
        put(folder, places[name], text)
    return folder


@pytest.mark.parametrize(
    ("files", "soc"),
    [
        ({"cpuinfo": CPUINFO}, "A Processor @ 2 GHz, cpu family 6, model 85"),
        ({"cpuinfo": CPUINFO, "tree": "A Board Rev 1.2\0"}, "A Board Rev 1.2"),
        ({"cpuinfo": "processor : 0\n"}, "unknown"),
    ],
)
def test_the_processor_is_named(tmp_path: Path, files: dict[str, str], soc: str) -> None:
    assert host_fingerprint(root(tmp_path, **files))["soc"] == soc


def test_a_machine_without_proc_is_named_by_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.processor", lambda: "z80")
    assert host_fingerprint(tmp_path)["soc"] == "z80"
    monkeypatch.setattr("platform.processor", lambda: "")
    assert host_fingerprint(tmp_path)["soc"] == "unknown"


@pytest.mark.parametrize(
    ("ranges", "state"),
    [
        ([("800000", "800000"), ("2400000", "2400000")], "locked"),
        ([("800000", "800000"), ("800000", "2400000")], "not locked"),
        ([("800000", "800000"), ("800000", "fast")], "not known"),
        ([("800000", "800000"), ("800000", "")], "not known"),
        ([("\0", "800000")], "not known"),
        ([], "not known"),
    ],
)
def test_clocks_are_locked_where_no_policy_leaves_a_choice(
    tmp_path: Path, ranges: list[tuple[str, str]], state: str
) -> None:
    for number, limits in enumerate(ranges):
        for end, limit in zip(("min", "max"), limits, strict=True):
            put(tmp_path, f"sys/devices/system/cpu/cpufreq/policy{number}/scaling_{end}_freq", limit)
    assert clock_conditions(tmp_path) == {"governor": "not known" if ranges else "none", "clocks": state}


def test_the_governor_is_that_of_all_processors_that_are_on(tmp_path: Path) -> None:
    """Each that differs is named; none where the kernel offers no control; what is off has none."""
    assert governor(tmp_path) == "none"
    assert governor(root(tmp_path, governor="performance\n")) == "performance"
    assert host_fingerprint(tmp_path)["governor"] == clock_conditions(tmp_path)["governor"] == "performance"
    put(tmp_path, "sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "schedutil")
    assert governor(tmp_path) == "performance, schedutil"
    board = plant(SMALL_CORES_OFF, tmp_path / "board")
    put(board, "sys/devices/system/cpu/cpufreq/policy0/related_cpus", "0 1 2 3")
    put(board, "sys/devices/system/cpu/cpufreq/policy0/scaling_governor", UNREADABLE)
    assert clock_conditions(board) == {"governor": "performance", "clocks": "locked"}


@given(total_bytes=st.integers(1, 2**50))
def test_memory_is_rounded_up_to_a_power_of_two(total_bytes: int) -> None:
    """The bucket is the least power of two GiB that holds the memory, so that it does not change; all is text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=total_bytes))
        found = host_fingerprint()
    assert all(isinstance(value, str) and value for value in found.values())
    bucket = int(found["memory_gib"])
    assert bucket & (bucket - 1) == 0
    assert bucket * 2**30 >= total_bytes
    assert bucket == 1 or bucket * 2**29 < total_bytes


@given(_FINGERPRINTS, _FINGERPRINTS)
def test_differences_are_the_fields_that_differ(old: dict[str, str], new: dict[str, str]) -> None:
    lines = differences(old, new)
    assert len(lines) == sum(old.get(name) != new.get(name) for name in {*old, *new})
    assert (not lines) == (old == new)


def test_a_difference_is_told_with_both_values() -> None:
    old, new = {"soc": "A", "threads": "2", "gone": "x"}, {"soc": "A", "threads": "1", "come": "y"}
    assert differences(old, new) == ("threads '2', now '1'", "gone 'x', now '-'", "come '-', now 'y'")


def test_a_fingerprint_is_what_was_asked_for_what_the_machine_is_and_the_engine() -> None:
    """Each field is one of the three; of an OpenCL platform the name was asked for, the version is the machine's."""
    platform = {"opencl_platform": "A, B and C, OpenCL 3.0 X 5.0, Release", "opencl_driver": "5.0"}
    asked = {"backend": "opencl", "threads": "2", "flash_attn": "on", "kv_types": "f16/f16", "model": "m"}
    fingerprint = {"soc": "A", "engine": "b123", **asked, **platform}
    assert asked_fields(fingerprint) == {**asked, "opencl_platform": "A, B and C"}
    assert machine_fields(fingerprint) == {"soc": "A", **platform}
    assert without_engine(fingerprint) == {"soc": "A", **asked, **platform}
