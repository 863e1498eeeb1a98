"""A run as rows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from perfsuite.errors import HistoryError
from perfsuite.records.judgement import told_judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN, BoardName
from perfsuite.report.history.rows import fingerprint_digest, run_identity, run_rows, start_of
from perfsuite.testing.run_files import synthetic_run


def test_each_case_has_the_circumstances_of_its_group() -> None:
    """Sentinels, fingerprint and engine are those of the group that measured the case."""
    run = synthetic_run(n_cases=500)
    rows = {row["kind"]: row for row in run_rows(run)}
    for kind, group in (("phase", "llama"), ("operator", "llama"), ("kernel", "kernels")):
        assert json.loads(rows[kind]["fingerprint"]) == run.fingerprints[group]
        assert rows[kind]["engine"] == run.subjects[group]
        assert rows[kind]["fingerprint_digest"] == fingerprint_digest(run.fingerprints[group])


def test_boards_of_a_kind_are_told_apart() -> None:
    """A row has the identity and the host name of its board, and none of them where the run did not keep it."""
    run = synthetic_run(n_cases=3)
    board = BoardName(identity="0123456789abcdef", hostname="shelf-2", is_linked=True)
    (row, *_) = run_rows(replace(run, origin=replace(run.origin, board=board)))
    assert (row["board"], row["board_hostname"], row["is_linked"]) == ("0123456789abcdef", "shelf-2", True)
    (row, *_) = run_rows(replace(run, origin=replace(run.origin, board=None)))
    assert (row["board"], row["board_hostname"], row["is_linked"]) == (None, None, None)


def test_a_case_of_the_roofline_has_that_fingerprint() -> None:
    """What was measured in sweeps is not that of the engine, whether the run has one or not."""
    run = synthetic_run(n_cases=6)
    case = replace(run.judgements[0], kind="roofline", case_id="roofline/x")
    for others in ({}, {"llama": {"engine": "one"}}):
        (row,) = run_rows(replace(run, judgements=(case,), fingerprints={**others, "roofline": {"soc": "two"}}))
        assert json.loads(row["fingerprint"]) == {"soc": "two"}


def test_what_was_not_measured_is_not_known() -> None:
    """A case without samples has no times, and a case of an unknown group no fingerprint."""
    run = replace(synthetic_run(n_cases=8), judgements=(told_judgement("mine/x", "mine", Outcome.INVALID, "why"),))
    (row,) = run_rows(run)
    assert row["samples_ns"] == []
    names = ("measured_ns", "sample_min_ns", "sample_median_ns", "fingerprint", "fingerprint_digest", "engine")
    assert [row[name] for name in names] == [None] * len(names)


def test_a_digest_is_that_of_the_fields() -> None:
    """The order of the fields does not matter, their values do."""
    assert fingerprint_digest({"a": "1", "b": "2"}) == fingerprint_digest({"b": "2", "a": "1"})
    assert fingerprint_digest({"a": "1"}) != fingerprint_digest({"a": "2"})


def test_the_build_of_an_engine_is_found() -> None:
    """The id behind 'build' is told by itself; where there is none, none is."""
    run = synthetic_run(n_cases=8)
    told = replace(run, subjects={**run.subjects, "llama": "llama 0.5.0, build a3ad7efef74a3d92"})
    assert run_rows(told)[0]["engine_build"] == "a3ad7efef74a3d92"
    assert run_rows(run)[0]["engine_build"] is None


def test_a_run_without_an_id_has_one_of_its_own() -> None:
    """Runs that were written before there were ids are told apart, and each is the same again."""
    old, other = (replace(synthetic_run(n_cases=8, seed=seed), origin=NO_ORIGIN) for seed in (0, 1))
    assert run_identity(old) == run_identity(replace(old))
    assert run_identity(old) != run_identity(other)


@pytest.mark.parametrize("started_at", ["2026-03-01T02:00:00Z", "2026-03-01T03:00:00+01:00", "2026-03-01T02:00:00"])
def test_times_are_utc(started_at: str) -> None:
    """A time in any zone is the same moment; one without a zone is UTC."""
    assert start_of(replace(synthetic_run(n_cases=8), started_at=started_at)).isoformat() == "2026-03-01T02:00:00"


def test_a_time_that_is_none_is_told() -> None:
    """The error names the field and its value."""
    with pytest.raises(HistoryError, match="started_at is 'now'"):
        start_of(replace(synthetic_run(n_cases=8), started_at="now"))
