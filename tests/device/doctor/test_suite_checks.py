"""What a doctor says of the link, the suite, the lock, the disk, the clock and OpenCL."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.device.doctor.examination import examine
from perfsuite.device.doctor.suite_checks import (
    check_clock,
    check_disk,
    check_lock,
    check_opencl,
    check_reach,
    check_suite,
)
from perfsuite.device.lock.owner import LockOwner
from perfsuite.device.lock.state import Holder, LockState
from perfsuite.device.reach import Reach

from .device_facts import INSTALLED, STATE, facts, told

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
    found = examine(facts(link_problem="connection refused (bench port 22); nothing listens there: is sshd running?"))
    assert told(found) == [("reach", "fail")]
    assert found[0].seen == "connection refused (bench port 22)"
    assert found[0].mend == "nothing listens there: is sshd running?"


def test_a_device_in_good_order_has_nothing_to_mend() -> None:
    """Nothing fails and nothing warns, and no line asks for anything."""
    found = examine(facts())
    assert {grade for _, grade in told(found)} == {"ok"}
    assert {each.mend for each in found} == {""}
    assert told(check_reach(facts())) == [("reach", "ok")]


def test_a_missing_or_another_suite_is_mended_by_setup() -> None:
    """Without a suite nothing can be measured; with other files of the same version results may differ."""
    (missing,) = check_suite(facts(suite=None, suite_problem="is not there"))
    assert (missing.grade.value, missing.mend) == ("fail", "perfsuite devices setup bench")
    older = replace(STATE, installed=replace(INSTALLED, plan_schema=1))
    assert told(check_suite(facts(suite=older))) == [("suite", "fail"), ("llama.cpp", "ok")]
    assert told(check_suite(facts(here_digest="d2"))) == [("suite", "warn"), ("llama.cpp", "ok")]
    without = replace(STATE, installed=replace(INSTALLED, engine_build_id=None, engine_problem="no libllama"))
    assert told(check_suite(facts(suite=without))) == [("suite", "ok"), ("llama.cpp", "fail")]


def test_this_machine_is_mended_without_setup() -> None:
    """Setup refuses the machine that it runs on: nothing that it is to be told to do names it."""
    local = {"reach": Reach()}
    (missing,) = check_suite(facts(profile=local, suite=None, suite_problem="does not run"))
    named = "LLAMA_CPP_LIB_PATH: /opt/llama: is no folder; expected a checkout"
    for problem, seen, mend in (
        (named, "LLAMA_CPP_LIB_PATH: /opt/llama: is no folder", "expected a checkout"),
        ("/opt/llama: no llama.h near it", "/opt/llama: no llama.h near it", f"{missing.mend}; or name a whole build"),
    ):
        without = replace(STATE, installed=replace(INSTALLED, engine_build_id=None, engine_problem=problem))
        engine = list(check_suite(facts(profile=local, suite=without)))[1]
        assert (engine.seen, engine.grade.value) == (seen, "fail")
        assert engine.mend.startswith(mend)
        assert "devices setup" not in engine.mend + missing.mend


def test_what_would_disturb_is_not_looked_at() -> None:
    """Beside a run OpenCL and eBPF were not asked: a line says so, and none says that there is nothing."""
    busy = replace(STATE, is_busy=True, opencl_problem=None, lock=LOCK)
    found = examine(facts(profile={"opencl_platform": "QUALCOMM"}, suite=busy))
    seen = {each.what: (each.grade.value, each.seen) for each in found}
    assert seen["OpenCL"] == ("warn", "not looked at: that would disturb who has the device")
    assert seen["eBPF"] == ("ok", "not looked at: that would disturb who has the device")


def test_a_lock_is_told_with_its_owner() -> None:
    """A run that is under way is waited for; a stale lock has to be broken by hand."""
    (running,) = check_lock(facts(suite=replace(STATE, lock=LOCK)))
    assert running.grade.value == "warn"
    assert "ann from desk (pytest --device=bench)" in running.seen
    (stale,) = check_lock(facts(suite=replace(STATE, lock=replace(LOCK, holder=Holder.GONE))))
    assert (stale.grade.value, stale.mend) == ("fail", "perfsuite devices unlock bench")


def test_leftovers_count_only_where_nobody_measures() -> None:
    """The file by which a run restores governors is that of the run that has the lock, or a leftover."""
    left = replace(STATE, restore_file="/home/pi/.cache/perfsuite/device/restore.json")
    assert told(check_lock(facts(suite=left))) == [("lock", "ok"), ("leftovers", "warn")]
    assert told(check_lock(facts(suite=replace(left, lock=LOCK)))) == [("lock", "warn")]


def test_the_disk_has_to_hold_the_model() -> None:
    """Room is asked for the default model and for caches."""
    assert told(check_disk(facts())) == [("disk", "ok")]
    assert told(check_disk(facts(suite=replace(STATE, cache_free_bytes=1_000_000_000)))) == [("disk", "fail")]


def test_a_clock_that_is_off_is_told_with_the_difference() -> None:
    """A difference of a second cannot be told from none."""
    assert told(check_clock(facts(clock_difference_s=1.0))) == [("clock", "ok")]
    (off,) = check_clock(facts(clock_difference_s=-86400.0))
    assert (off.grade.value, off.seen) == ("warn", "-86400 s from this machine's")


def test_whether_a_clock_is_synchronised_is_told_where_it_is_known() -> None:
    """It stands behind the difference; a device that does not say is not called either."""
    for line, words in (
        ("clock_synchronised = yes", ", synchronised"),
        ("clock_synchronised = no", ", not synchronised"),
    ):
        (found,) = check_clock(facts(line))
        assert found.seen == f"+0 s from this machine's{words}"


def test_opencl_is_asked_for_by_the_profile_alone() -> None:
    """A device without OpenCL is in order unless its profile names a platform."""
    assert told(check_opencl(facts())) == [("OpenCL", "ok")]
    assert told(check_opencl(facts(profile={"opencl_platform": "QUALCOMM"}))) == [("OpenCL", "fail")]
