"""Two recorders side by side."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.experiments.tracing.command_agreement_tables import agreement_answer
from perfsuite.experiments.tracing.recorder_agreement import RecorderAgreement, ThreadAccount, TimesAgreement
from tests.command_streams import Streams, plain_of, printed

_TIMES = TimesAgreement(name="MUL_MAT", n_operators=422, ebpf_ns=2_020_000, callback_ns=2_000_000)
_FOUND = RecorderAgreement(
    n_evaluations=2,
    n_callback_only=0,
    n_ebpf_only=0,
    n_ebpf=1030,
    n_callback=1030,
    n_different=0,
    first_difference=None,
    total=replace(_TIMES, name=""),
    phases=(),
    ops=(_TIMES,),
    threads=(ThreadAccount(thread=1, own_ns=1_500_000, wait_ns=490_000, graph_ns=2_000_000),),
)


def test_that_they_agree_is_said_first(capsys: Streams) -> None:
    """Order and number of operators are told before any time."""
    told = printed(agreement_answer(_FOUND), capsys)
    assert told.startswith("2 evaluations seen by both recorders: the same operators in the same order; 1030 by eBPF")
    assert "differ" not in told


def test_a_difference_is_told_in_words(capsys: Streams) -> None:
    """What one saw alone, and the first operator that differs, have lines of their own."""
    found = replace(_FOUND, n_callback_only=3, n_different=1, first_difference="evaluation 1, operator 7: ADD, MUL")
    told = printed(agreement_answer(found), capsys)
    assert "not the same operators" in told
    assert "seen by one alone: 3 by the callback, 0 by eBPF" in told
    assert "1 evaluation differ, first: evaluation 1, operator 7: ADD, MUL" in told


def test_times_and_threads_have_tables(capsys: Streams) -> None:
    """The ratio of each operator and of all, and the share of the graphs that each thread accounts for."""
    rows = [line.split() for line in printed(agreement_answer(_FOUND), capsys).splitlines()]
    assert ["MUL_MAT", "422", "2.02", "ms", "2.00", "ms", "1.0100"] in rows
    assert ["all", "422", "2.02", "ms", "2.00", "ms", "1.0100"] in rows
    assert rows[-1][-2:] == ["99.50", "%"]


def test_json_has_what_the_tables_show() -> None:
    """Ratios and whether they agree are among the keys, and the total has a name."""
    plain = plain_of(agreement_answer(_FOUND))
    assert (plain["schema"], plain["is_same"]) == (1, True)
    assert (plain["total"]["name"], plain["total"]["ratio"]) == ("all", 1.01)
    assert plain["threads"][0]["accounted_ratio"] == 0.995
