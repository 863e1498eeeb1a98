"""What is stored of one fingerprint."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.verdict.entry import FIRST_SESSION, MAX_SESSIONS, BaselineEntry, StoredSession, first_entry


def session(recorded_at: str = "1", sentinel_ns: int | None = None, **samples: tuple[int, ...]) -> StoredSession:
    sentinels = {"memory": (sentinel_ns,) * 3} if sentinel_ns else {}
    return StoredSession(recorded_at=recorded_at, suite_version="1", samples_ns=samples, sentinels_ns=sentinels)


def entry(*sessions: StoredSession) -> BaselineEntry:
    first, *rest = sessions
    made = first_entry({"soc": "A"}, first)
    for each in rest:
        made = made.with_session(each)
    return made


def test_a_case_is_anchored_at_its_first_session() -> None:
    """Later ones leave the anchor alone, until it is pinned anew at the present references."""
    made = entry(session("1", 10, a=(1, 2, 9)), session("2", 20, a=(5,)))
    assert (made.anchor.recorded_at, made.anchor.reason) == ("1", FIRST_SESSION)
    assert (made.anchor.cases_ns, made.anchor.sentinels_ns) == ({"a": 2}, {"memory": 10})
    made = entry(session("1", a=(1,)), session("2", 20, b=(5,)), session("3", 30, b=(7,)))
    assert (made.anchor.cases_ns, made.anchor.sentinels_ns) == ({"a": 1, "b": 5}, {"memory": 20})
    made = entry(session("1", 10, a=(1,), gone=(3,)), session("2", 20, a=(5,)))
    kept = BaselineEntry(fingerprint=made.fingerprint, sessions=made.sessions[1:], anchor=made.anchor)
    anchor = kept.anchored(recorded_at="3", reason="why not").anchor
    assert (anchor.recorded_at, anchor.reason) == ("3", "why not")
    assert (anchor.cases_ns, anchor.sentinels_ns) == ({"a": 5, "gone": 3}, {"memory": 20})


def test_a_reference_is_the_median_of_the_medians() -> None:
    """Each session counts once, however many samples it has; a case that nobody measured has no reference."""
    made = entry(session("1", a=(10,) * 9), session("2", a=(20,)), session("3", a=(30,), b=(4, 6)))
    assert made.references_ns() == {"a": 20, "b": 5}
    assert made.reference_ns("c") is None
    assert made.case_ids == ("a", "b")


def test_the_oldest_sessions_go() -> None:
    """A case has the newest twenty sessions; an old session stays as long as it has a case that is nowhere else."""
    rare = session("0", a=(1,), rare=(1,))
    made = entry(rare, *(session(str(at), a=(at,)) for at in range(1, MAX_SESSIONS + 5)))
    assert [each.recorded_at for each in made.sessions_of("a")] == [str(at) for at in range(5, MAX_SESSIONS + 5)]
    assert [each.recorded_at for each in made.sessions_of("rare")] == ["0"]
    assert "a" not in made.sessions[0].samples_ns


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=30), st.integers(1, 5))
def test_pruning_keeps_the_newest_of_each_case(cases: list[set[str]], n_kept: int) -> None:
    made = entry(*(session(str(at), **dict.fromkeys(held, (1,))) for at, held in enumerate(cases)))
    pruned = made.pruned(n_kept)
    for case_id in made.case_ids:
        assert [each.recorded_at for each in pruned.sessions_of(case_id)] == [
            each.recorded_at for each in made.sessions_of(case_id)
        ][-n_kept:]
    assert all(each.samples_ns for each in pruned.sessions)


def test_a_board_without_an_entry_gets_an_empty_one() -> None:
    made = entry(session("1", 10, a=(1,))).for_board("fast", session("2", 20, a=(3,)))
    assert (made.board, made.fingerprint, made.sessions, made.approvals) == ("fast", {"soc": "A"}, (), ())
    assert (made.anchor.recorded_at, made.anchor.cases_ns, made.anchor.sentinels_ns) == ("2", {"a": 3}, {"memory": 20})
    made = entry(session("1", a=(1,)))
    assert (made.machine_text, made.for_board("fast", session("2")).machine_text) == ("soc A", "soc A, board fast")
