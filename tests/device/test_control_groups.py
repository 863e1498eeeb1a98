"""Limits of control groups, of both versions, from files that are laid out here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.device.control_groups import OWN_GROUPS, limit_patterns, limits, throttled_ns
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.verdict.baseline import BaselineFile
from perfsuite.verdict.entry import StoredSession
from perfsuite.verdict.match import match_case
from tests.sys_trees import put

UNIFIED, SPLIT = "0::/a/b\n", "4:cpu,cpuacct:/a/b\n2:cpuset:/c\n1:memory:/\n"


def machine(folder: Path, groups: str, files: dict[str, str], *, online: str = "0-7") -> Path:
    put(folder, OWN_GROUPS, groups)
    put(folder, "sys/devices/system/cpu/online", online)
    for place, text in files.items():
        put(folder, f"sys/fs/cgroup/{place}", text)
    return folder


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        (SPLIT, {"cpu/a/b/cpu.stat": "throttled_time 5", "cpu/cpu.stat": "throttled_time 2"}, 7),
        (UNIFIED, {"a/b/cpu.stat": "usage_usec 9\nthrottled_usec 5", "a/cpu.stat": "throttled_usec 1"}, 6000),
        ("0::/\n", {"cpu.stat": "nr_periods 1\nusage_usec 9"}, None),
        ("", {}, None),
    ],
)
def test_quotas_of_all_groups_above_count(
    tmp_path: Path, groups: str, files: dict[str, str], expected: int | None
) -> None:
    """How long they held the process back is a sum; None where nothing says it."""
    assert throttled_ns(machine(tmp_path, groups, files)) == expected


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        (UNIFIED, {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, {"cpu_quota": "1.5 of 8"}),
        (SPLIT, {"cpu/a/cpu.cfs_quota_us": "50000", "cpu/a/cpu.cfs_period_us": "100000"}, {"cpu_quota": "0.5 of 8"}),
        (SPLIT, {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, {}),
        (UNIFIED, {"a/cpu.max": "800000 100000"}, {}),
        (UNIFIED, {"a/b/cpuset.cpus.effective": "0-3"}, {"cpuset": "4 of 8"}),
        (SPLIT, {"cpuset/c/cpuset.effective_cpus": "1,3", "cpuset/cpuset.effective_cpus": "0-7"}, {"cpuset": "2 of 8"}),
        (UNIFIED, {"cpuset.cpus.effective": "0-7"}, {}),
        ("0::/../..\n", {"a/cpu.max": "1 2"}, {}),
        ("nonsense\n", {"cpu.max": "much"}, {}),
    ],
)
def test_what_is_withheld_is_named(
    tmp_path: Path, groups: str, files: dict[str, str], expected: dict[str, str]
) -> None:
    """The least quota of all groups, and the processors of the nearest; without limits there is no field."""
    assert limits(machine(tmp_path, groups, files)) == expected


def test_the_files_of_a_board_are_those_that_limit(tmp_path: Path) -> None:
    """What is asked of a board is what is read here, of its own groups and those above; of any where it names none."""
    root = machine(tmp_path, "0::/a*/b\\x2d\n", {"a*/cpu.max": "1 2", "ab/cpu.max": "1 4"})
    found = {str(path.relative_to(root)) for each in limit_patterns(root) for path in root.glob(_glob(each))}
    assert found == {"sys/fs/cgroup/a*/cpu.max"}
    assert r"sys/fs/cgroup/a\*/b\\x2d/cpu.max" in limit_patterns(root)
    unknown = limit_patterns(tmp_path / "nothing")
    assert {"sys/fs/cgroup/cpu.max", "sys/fs/cgroup/*/*/cpu.max", "sys/fs/cgroup/cpuset/*/cpuset.cpus"} <= {*unknown}


def _glob(pattern: str) -> str:
    """Write a pattern of the C library's as Python has it."""
    return re.sub(r"\\(.)", lambda found: f"[{found[1]}]", pattern)


def test_processors_that_differ_are_named(tmp_path: Path) -> None:
    root = machine(tmp_path, UNIFIED, {"a/cpuset.cpus.effective": "0-3"})
    for policy, clock in (("0", "1800000"), ("4", "2400000")):
        put(root, f"sys/devices/system/cpu/cpufreq/policy{policy}/cpuinfo_max_freq", clock)
    assert limits(root) == {"cpuset": "0-3 of 8"}


def test_a_quota_is_no_other_machine_s_baseline(tmp_path: Path) -> None:
    case_id = "phase/x/siso/decode"
    own = host_fingerprint(machine(tmp_path / "own", UNIFIED, {}))
    limited = host_fingerprint(machine(tmp_path / "limited", UNIFIED, {"a/cpu.max": "100000 100000"}))
    session = StoredSession(recorded_at="then", suite_version="1", samples_ns={case_id: (1000,)})
    stored = BaselineFile(path=tmp_path).with_session(own, session)
    assert "cpu_quota" not in own
    assert match_case(stored, own, case_id, sentinels_ns={}, weights={}).sessions_ns
    found = match_case(stored, limited, case_id, sentinels_ns={}, weights={})
    assert (found.sessions_ns, found.differences) == ((), ("cpu_quota '-', now '1 of 8'",))
