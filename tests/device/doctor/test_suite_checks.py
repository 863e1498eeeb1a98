"""What a doctor says of the link, the suite, the lock, the disk, the clock and OpenCL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perfsuite.device.doctor.examination import examine
from perfsuite.device.lock.state import Holder, LockOwner, LockState
from perfsuite.device.reach import Reach

from .device_facts import INSTALLED, STATE, facts, found, grades

LOCK = LockState(
    path="/run/lock/perfsuite-device.lock",
    owner=LockOwner.here(user="ann", host="desk", run_id="r1", purpose="pytest --device=bench"),
    account="pi",
    holder=Holder.RUNS,
    beat_age_s=1.0,
    held_s=60.0,
)


def test_a_device_out_of_reach_is_all_that_is_told() -> None:
    """The link's own words say what was seen and what to do; nothing else is known."""
    problem = "connection refused (bench port 22); nothing listens there: is sshd running?"
    (finding,) = examine(facts(link_problem=problem))
    assert (finding.what, finding.grade.value) == ("reach", "fail")
    assert finding.seen == "connection refused (bench port 22)"
    assert finding.mend == "nothing listens there: is sshd running?"


def test_a_device_in_good_order_has_nothing_to_mend() -> None:
    """Nothing fails and nothing warns, and no line asks for anything."""
    assert set(grades().values()) == {"ok"}
    assert {each.mend for each in examine(facts())} == {""}


def test_a_missing_or_another_suite_is_mended_by_setup() -> None:
    """Without a suite nothing can be measured; with other files of the same version results may differ."""
    missing = found("suite", suite=None, suite_problem="is not there")
    assert (missing.grade.value, missing.mend) == ("fail", "perfsuite devices setup bench")
    assert not {"llama.cpp", "lock", "disk", "OpenCL", "eBPF"} & set(grades(suite=None, suite_problem="is not there"))
    older = grades(suite=replace(STATE, installed=replace(INSTALLED, plan_schema=1)))
    assert (older["suite"], older["llama.cpp"]) == ("fail", "ok")
    assert grades(here_digest="d2")["suite"] == "warn"
    without = replace(INSTALLED, engine_build_id=None, engine_problem="no libllama")
    engine = found("llama.cpp", suite=replace(STATE, installed=without))
    assert (engine.grade.value, engine.mend) == ("fail", "perfsuite devices setup bench --force")


@pytest.mark.parametrize(
    ("problem", "seen", "mend"),
    [
        (
            "LLAMA_CPP_LIB_PATH: /opt/llama: is no folder; expected a checkout",
            "LLAMA_CPP_LIB_PATH: /opt/llama: is no folder",
            "expected a checkout",
        ),
        ("/opt/llama: no llama.h near it", "/opt/llama: no llama.h near it", "install the suite here anew: "),
    ],
)
def test_this_machine_is_mended_without_setup(problem: str, seen: str, mend: str) -> None:
    """Setup refuses the machine that it runs on: nothing that it is to be told to do names it."""
    local = {"reach": Reach()}
    missing = found("suite", profile=local, suite=None, suite_problem="does not run")
    without = replace(STATE, installed=replace(INSTALLED, engine_build_id=None, engine_problem=problem))
    engine = found("llama.cpp", profile=local, suite=without)
    assert (engine.seen, engine.grade.value) == (seen, "fail")
    assert engine.mend.startswith(mend)
    assert "devices setup" not in engine.mend + missing.mend


LEFT = replace(STATE, restore_file="/home/pi/.cache/perfsuite/device/restore.json")


@pytest.mark.parametrize(
    ("what", "facts", "grade"),
    [
        ("disk", {}, "ok"),
        ("disk", {"suite": replace(STATE, cache_free_bytes=1_000_000_000)}, "fail"),
        ("OpenCL", {}, "ok"),
        ("OpenCL", {"profile": {"opencl_platform": "QUALCOMM"}}, "fail"),
        ("leftovers", {"suite": LEFT}, "warn"),
        ("leftovers", {"suite": replace(LEFT, lock=LOCK)}, None),
    ],
)
def test_a_finding_has_its_grade(what: str, facts: dict[str, Any], grade: str | None) -> None:
    """Room is for model and caches; OpenCL counts where the profile asks for it; a run's own file is no leftover."""
    assert grades(**facts).get(what) == grade


def test_what_would_disturb_is_not_looked_at() -> None:
    """Beside a run OpenCL and eBPF were not asked: a line says so, and none says that there is nothing."""
    busy = replace(STATE, is_busy=True, opencl_problem=None, lock=LOCK)
    not_looked = "not looked at: that would disturb who has the device"
    for what, grade in (("OpenCL", "warn"), ("eBPF", "ok")):
        finding = found(what, profile={"opencl_platform": "QUALCOMM"}, suite=busy)
        assert (finding.grade.value, finding.seen) == (grade, not_looked)


def test_a_lock_is_told_with_its_owner() -> None:
    """A run that is under way is waited for; a stale lock has to be broken by hand."""
    running = found("lock", suite=replace(STATE, lock=LOCK))
    assert running.grade.value == "warn"
    assert "ann from desk (pytest --device=bench)" in running.seen
    stale = found("lock", suite=replace(STATE, lock=replace(LOCK, holder=Holder.GONE)))
    assert (stale.grade.value, stale.mend) == ("fail", "perfsuite devices unlock bench")


@pytest.mark.parametrize(
    ("difference_s", "lines", "grade", "seen"),
    [
        (1.0, (), "ok", "+1 s from this machine's"),
        (-86400.0, (), "warn", "-86400 s from this machine's"),
        (0.0, ("clock_synchronised = yes",), "ok", "+0 s from this machine's, synchronised"),
        (0.0, ("clock_synchronised = no",), "ok", "+0 s from this machine's, not synchronised"),
    ],
)
def test_a_clock_that_is_off_is_told_with_the_difference(
    difference_s: float, lines: tuple[str, ...], grade: str, seen: str
) -> None:
    """A difference of a second cannot be told from none; whether it is synchronised is said where it is known."""
    finding = found("clock", *lines, clock_difference_s=difference_s)
    assert (finding.grade.value, finding.seen) == (grade, seen)
