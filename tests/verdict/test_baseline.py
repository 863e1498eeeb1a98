"""Stored baselines: read, merged, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from perfsuite.verdict.baseline import BaselineFile, read_baselines, write_baselines
from perfsuite.verdict.entry import MAX_SESSIONS, Anchor, Approval, BaselineEntry, StoredSession, first_entry

TWO_THREADS = {"soc": "A", "threads": "2"}
ONE_THREAD = {"soc": "A", "threads": "1"}


def session(recorded_at: str = "2025-01-01T00:00:00Z", **samples: tuple[int, ...]) -> StoredSession:
    return StoredSession(recorded_at=recorded_at, suite_version="1", samples_ns=samples)


def entry(fingerprint: Mapping[str, str] = TWO_THREADS, **samples: tuple[int, ...]) -> BaselineEntry:
    return first_entry(fingerprint, session(**samples))


def test_an_entry_is_found_by_its_whole_fingerprint(tmp_path: Path) -> None:
    baselines = BaselineFile(path=tmp_path, entries=(entry(ONE_THREAD), entry(TWO_THREADS, a=(1,))))
    assert baselines.find(dict(reversed(TWO_THREADS.items()))) is baselines.entries[1]
    assert baselines.find({**TWO_THREADS, "more": "x"}) is None
    assert baselines.find({"soc": "A"}) is None


def test_the_nearest_entry_says_what_differs(tmp_path: Path) -> None:
    far, near = {"soc": "B", "governor": "x", "threads": "2"}, {"soc": "A", "governor": "x", "threads": "2"}
    baselines = BaselineFile(path=tmp_path, entries=(entry(far), entry(ONE_THREAD), entry(near)))
    assert baselines.machine_differences({**near, "governor": "y"}) == ("governor 'x', now 'y'",)
    assert baselines.machine_differences(near) == ()
    baselines = BaselineFile(path=tmp_path, entries=(entry(TWO_THREADS), entry({**ONE_THREAD, "backend": "cpu"})))
    asked = {"soc": "B", "threads": "4", "backend": "cpu"}
    assert (baselines.machine_differences(asked), baselines.unknown_settings(asked)) == ((), {"threads": "4"})


def test_the_engine_keeps_nothing_apart(tmp_path: Path) -> None:
    old = replace(session(a=(1,)), engine_version="b123")
    baselines = BaselineFile(path=tmp_path).with_session({**TWO_THREADS, "engine": "b123"}, old)
    new = replace(session("later", a=(2,)), engine_version="b456")
    baselines = baselines.with_session({**TWO_THREADS, "engine": "b456"}, new)
    (found,) = baselines.entries
    assert found is baselines.find({**TWO_THREADS, "engine": "b789"})
    assert [each.engine_version for each in found.sessions] == ["b123", "b456"]
    assert found.machine_text == "soc A, threads 2, engine b123, then b456"


def test_entries_that_an_engine_kept_apart_are_read_as_one(tmp_path: Path) -> None:
    """Sessions and approvals of an older file come in the order of time, the earlier anchors count, nothing is lost."""

    def of_engine(engine: str, anchor: Anchor, *recorded_at: str, approved_at: str = "now") -> BaselineEntry:
        approval = Approval(approved_at=approved_at, reason="", change_ratio={"a": 1.1}, retired_ns={"a": 1})
        sessions = tuple(session(each, a=(1, 2)) for each in recorded_at)
        fingerprint = {**TWO_THREADS, "engine": engine}
        return BaselineEntry(fingerprint=fingerprint, sessions=sessions, anchor=anchor, approvals=(approval,))

    march = Anchor(recorded_at="2026-03", reason="", cases_ns={"a": 3, "b": 4}, sentinels_ns={})
    january = Anchor(recorded_at="2026-01", reason="", cases_ns={"a": 1}, sentinels_ns={})
    late = of_engine("b456", march, "2026-03", "2026-04")
    early = of_engine("b123", january, "2026-01", "2026-05", approved_at="2025")
    path = tmp_path / "model.json"
    write_baselines(BaselineFile(path=path, entries=(late, early, entry({**ONE_THREAD, "engine": "b123"}))))
    found, alone = read_baselines(path).entries
    assert [each.recorded_at for each in found.sessions] == ["2026-01", "2026-03", "2026-04", "2026-05"]
    assert [each.engine_version for each in found.sessions] == ["b123", "b456", "b456", "b123"]
    assert (found.anchor.recorded_at, found.anchor.cases_ns) == ("2026-01", {"a": 1, "b": 4})
    assert [each.approved_at for each in found.approvals] == ["2025", "now"]
    assert (dict(found.fingerprint), dict(alone.fingerprint)) == (TWO_THREADS, ONE_THREAD)


def test_a_session_is_added_to_its_own_entry(tmp_path: Path) -> None:
    """Other entries and the file that was read are untouched; an entry takes the place of its own."""
    old = BaselineFile(path=tmp_path, entries=(entry(TWO_THREADS, b=(1,), c=(2,)), entry(ONE_THREAD, b=(9,))))
    new = old.with_session(dict(reversed(TWO_THREADS.items())), session("later", a=(5,), b=(3, 4)))
    assert new.find(ONE_THREAD) is old.entries[1]
    found = new.find(TWO_THREADS)
    assert found is new.entries[0]
    assert found is not None
    assert [each.samples_ns for each in found.sessions] == [{"b": (1,), "c": (2,)}, {"a": (5,), "b": (3, 4)}]
    assert (found.anchor.cases_ns, len(new.entries)) == ({"a": 5, "b": 1, "c": 2}, 2)
    assert old.find(TWO_THREADS) is old.entries[0]
    old = BaselineFile(path=tmp_path, entries=(entry(TWO_THREADS, b=(1,)), entry(ONE_THREAD, b=(9,))))
    new = entry(TWO_THREADS, a=(5,))
    assert old.with_entry(new).entries == (new, old.entries[1])
    baselines = BaselineFile(path=tmp_path).with_session(TWO_THREADS, session(a=(1,)))
    assert [each.sessions[0].samples_ns for each in baselines.entries] == [{"a": (1,)}]


def test_the_first_schema_is_read(tmp_path: Path) -> None:
    """An entry of schema 1 is one session, anchored at it."""
    path = tmp_path / "model.json"
    plain = {"fingerprint": TWO_THREADS, "recorded_at": "now", "suite_version": "1", "cases": {"a": [1, 2]}}
    path.write_text(json.dumps({"schema": 1, "entries": [plain]}))
    (found,) = read_baselines(path).entries
    assert found == first_entry(TWO_THREADS, session("now", a=(1, 2)))
    assert (found.anchor.recorded_at, found.anchor.cases_ns) == ("now", {"a": 2})


def test_boards_of_a_kind_keep_their_own_sessions(tmp_path: Path) -> None:
    """The sessions of other boards stay, anchors are each board's own, and the file says which board."""
    baselines = BaselineFile(path=tmp_path).with_session(TWO_THREADS, session("first", a=(108,)), "slow")
    for at in range(MAX_SESSIONS + 5):
        baselines = baselines.with_session(TWO_THREADS, session(str(at), a=(100,)), "fast")
    slow, fast = (baselines.find(TWO_THREADS, board) for board in ("slow", "fast"))
    assert slow is not None
    assert fast is not None
    assert baselines.find(TWO_THREADS) is None
    assert ([each.recorded_at for each in slow.sessions], len(fast.sessions)) == (["first"], MAX_SESSIONS)
    assert (slow.anchor.cases_ns, fast.anchor.cases_ns) == ({"a": 108}, {"a": 100})
    assert baselines.comparable(TWO_THREADS, "slow") == (slow,)
    assert baselines.other_boards(TWO_THREADS, "slow") == (fast,)
    path = tmp_path / "model.json"
    own = replace(entry(a=(1,)), board="0123456789abcdef")
    write_baselines(BaselineFile(path=path, entries=(entry(a=(2,)), own)))
    assert read_baselines(path).entries == (entry(a=(2,)), own)
    assert ["board" in each for each in json.loads(path.read_text())["entries"]] == [False, True]
