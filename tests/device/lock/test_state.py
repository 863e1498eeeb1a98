"""Whether the holder of a lock still runs, and the line that says so."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from perfsuite.device.lock.state import Holder, LockOwner, LockState, judged_holder, seconds_since
from perfsuite.device.process_start import boot_id, pid_namespace, process_start

OWNER = LockOwner.here(user="anna", host="desk", run_id="r1", purpose="pytest --device=board")


def test_this_process_is_described() -> None:
    """The number, the start, the namespace and the boot are those of the process that asks."""
    started = process_start(os.getpid())
    assert started is not None
    assert (OWNER.pid, OWNER.start_ticks) == (os.getpid(), started.ticks)
    assert (OWNER.boot_id, OWNER.pid_namespace) == (boot_id(), pid_namespace())
    assert OWNER.began_at.endswith("+00:00")


def test_who_waited_begins_later() -> None:
    """The moment is that of getting the lock; one that is still to come, or is not named, is not known."""
    later = OWNER.beginning_now()
    assert OWNER.began_ns < later.began_ns <= time.monotonic_ns()
    assert later.run_id == OWNER.run_id
    assert seconds_since(time.monotonic_ns() + 10**12) is None
    assert seconds_since(None) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user", 1),
        ("host", None),
        ("pid", "12"),
        ("pid", -1),
        ("pid", 0),
        ("pid", True),
        ("began_ns", None),
        ("began_ns", 2**63),
        ("began_ns", 10**400),
        ("start_ticks", 10**400),
    ],
)
def test_what_is_no_owner_is_refused(name: str, value: object) -> None:
    """A field of another kind is a ValueError that names it."""
    with pytest.raises(ValueError, match=name):
        LockOwner.from_plain({**OWNER.to_plain(), name: value})


def test_a_hostile_text_is_shown_harmlessly() -> None:
    """Escape sequences and lines do not reach a terminal, nor does a text without end."""
    read = LockOwner.from_plain({**OWNER.to_plain(), "user": "\x1b[2Ja\nb", "purpose": "x" * 10_000})
    assert read.user == "?[2Ja?b"
    assert len(read.purpose) == 300


@pytest.mark.parametrize("folder", [None, 1, "", "relative", "/a\nb", "/" + "x" * 2000])
def test_a_folder_that_is_no_whole_path_is_not_known(folder: object) -> None:
    """Part of a path is another one; a lock of another version names none."""
    assert LockOwner.from_plain({**OWNER.to_plain(), "state_folder": folder}).state_folder == ""
    known = LockOwner.from_plain({**OWNER.to_plain(), "state_folder": "/home/pi/.cache/perfsuite/device"})
    assert known.state_folder == "/home/pi/.cache/perfsuite/device"


STATE = LockState(path="/x", owner=OWNER, account="pi", holder=Holder.RUNS, beat_age_s=3.0, held_s=720.0)


@pytest.mark.parametrize(
    ("owner", "beat_age_s", "holder"),
    [
        pytest.param(OWNER, 1.0, Holder.RUNS, id="this process"),
        pytest.param(OWNER, 61.0, Holder.HANGS, id="silent"),
        pytest.param(OWNER, None, Holder.HANGS, id="never beat"),
        pytest.param(replace(OWNER, start_ticks=1), 1.0, Holder.GONE, id="its number is another's now"),
        pytest.param(replace(OWNER, start_ticks=None), 1.0, Holder.RUNS, id="its start was not known"),
        pytest.param(replace(OWNER, pid=2**22 + 1), 1.0, Holder.GONE, id="no such process"),
        pytest.param(replace(OWNER, pid=2**62), 1.0, Holder.RUNS, id="no number of a process"),
        pytest.param(replace(OWNER, boot_id="another"), 1.0, Holder.EARLIER_BOOT, id="before the start"),
        pytest.param(replace(OWNER, boot_id=""), 1.0, Holder.RUNS, id="a system that names no boot"),
        pytest.param(replace(OWNER, pid_namespace="pid:[1]"), 1.0, Holder.RUNS, id="in a container, beating"),
        pytest.param(replace(OWNER, pid_namespace="pid:[1]"), 61.0, Holder.UNKNOWN, id="in a container, silent"),
        pytest.param(None, 1.0, Holder.RUNS, id="unreadable, beating"),
        pytest.param(None, None, Holder.UNKNOWN, id="unreadable"),
    ],
)
def test_a_holder_is_judged(owner: LockOwner | None, beat_age_s: float | None, holder: Holder) -> None:
    """The process, its start, its boot and its heartbeat together say how it is."""
    assert judged_holder(owner, beat_age_s) is holder


def test_the_line_of_a_holder() -> None:
    """Who, from where, for what, as which account there, since when, and the heartbeat; or the account alone."""
    expected = (
        f"held by anna from desk (pytest --device=board), account pi there since {OWNER.began_at} (12 min); "
        "its last heartbeat was 3 s ago"
    )
    assert STATE.text == expected
    state = replace(STATE, owner=None, holder=Holder.UNKNOWN, beat_age_s=None, held_s=None)
    assert state.text == "held by the account pi there; whether that still runs is unknown: no beat"


@pytest.mark.parametrize(
    ("holder", "part"),
    [
        (Holder.HANGS, "is there and hangs: its last heartbeat was 3 s ago; end that process, or 'perfsuite devices"),
        (Holder.GONE, "is gone, crashed or killed: its last heartbeat was 3 s ago; 'perfsuite devices unlock b'"),
        (Holder.EARLIER_BOOT, "that was before the device started; 'perfsuite devices unlock b' breaks the lock"),
        (Holder.UNKNOWN, "whether that still runs is unknown: its last"),
    ],
)
def test_a_refusal_says_what_to_do(holder: Holder, part: str) -> None:
    """Each way in which a holder can be has its own way out."""
    assert part in replace(STATE, holder=holder).refusal("b")


@pytest.mark.parametrize("owner", [OWNER, None])
def test_a_state_survives_the_link(owner: LockOwner | None) -> None:
    """Reading back what was written gives the same state, and the same owner."""
    state = replace(STATE, owner=owner)
    assert LockState.from_plain(state.to_plain()) == state
    assert owner is None or LockOwner.from_plain(owner.to_plain()) == owner


@pytest.mark.parametrize(
    "said",
    [
        {"holder": "sleeps"},
        {"holder": None},
        {"path": 1},
        {"beat_age_s": "1"},
        {"owner": "anna"},
        {"owner": {"pid": 1}},
    ],
)
def test_what_is_no_state_is_refused(said: dict[str, object]) -> None:
    """A device with another suite may answer anything; that is a ValueError, which its asker tells."""
    with pytest.raises(ValueError, match=r"."):
        LockState.from_plain({**STATE.to_plain(), **said})


def test_a_later_suite_may_say_more() -> None:
    """Fields that are not known are passed over, and what would steer a terminal is replaced."""
    read = LockState.from_plain({**STATE.to_plain(), "more": 1, "account": "p\x1b\n"})
    assert read == replace(STATE, account="p??")


def test_only_this_accounts_lock_is_its_own() -> None:
    """Another account's is not, nor one of which that is not known."""
    assert replace(STATE, uid=os.geteuid()).is_own
    assert not replace(STATE, uid=os.geteuid() + 1).is_own
    assert not STATE.is_own


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (7200.0, "2 h"), (200_000.0, "2 days")]
)
def test_durations_have_a_size_for_people(seconds: float, text: str) -> None:
    """Seconds up to two minutes, then minutes, hours and days."""
    assert f"heartbeat was {text} ago" in replace(STATE, beat_age_s=seconds).text
