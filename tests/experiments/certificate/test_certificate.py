"""The tally of trials."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.certificate.certificate import (
    CaseAnswer,
    Trial,
    Truth,
    append_trial,
    certificate,
    clopper_pearson,
    read_trials,
)
from perfsuite.records.outcome import Outcome

TRIAL = Trial(
    truth=Truth(operator="ffn_up", operator_ratio=0.2),
    answers={"phase/a/b/decode": CaseAnswer(outcome=Outcome.PASS, change_ratio=None, smallest_effect_ratio=1.5)},
    n_pairs=8,
    n_discarded=1,
    duration_s=12.5,
    carrier=None,
    peer_alarms={"a": {"decode": True}},
    samples_ns={"decode": [[1, 2], [3, 4]]},
)


def test_trials_come_back_as_they_were(tmp_path: Path) -> None:
    """Each is a line; a last line that was cut is left out, and any other that is none is named by its place."""
    path = tmp_path / "deep" / "trials.jsonl"
    assert read_trials(path) == ()
    append_trial(path, TRIAL)
    append_trial(path, TRIAL)
    assert read_trials(path) == (TRIAL, TRIAL)
    with path.open("a") as out:
        out.write('{"schema": 1, "tru')
    assert read_trials(path) == (TRIAL, TRIAL)
    with path.open("a") as out:
        out.write("\n")
    with pytest.raises(MeasurementError, match=r"trials\.jsonl:3: is not a trial.*certify anew"):
        read_trials(path)


SAME = Truth()
SLOWED = Truth(phase_ratio=0.05)


def trial(
    truth: Truth = SAME,
    *,
    prefill: Outcome = Outcome.PASS,
    decode: Outcome = Outcome.PASS,
    carrier: str | None = None,
    peer: bool = False,
) -> Trial:
    """Return a trial with these answers, and one operator that always passes."""
    outcomes = {"phase/a/b/prefill": prefill, "phase/a/b/decode": decode, "operator/a/b/decode/up": Outcome.PASS}
    return Trial(
        truth=truth,
        answers={
            case_id: CaseAnswer(outcome=outcome, change_ratio=1.0, smallest_effect_ratio=1.03)
            for case_id, outcome in outcomes.items()
        },
        n_pairs=10,
        n_discarded=0,
        duration_s=20.0,
        carrier=carrier,
        peer_alarms={"a rule": {"prefill": peer, "decode": False}},
        samples_ns={},
    )


@pytest.mark.parametrize(
    ("k", "n", "lower", "upper"),
    [
        # scipy.stats.beta.ppf(0.95, k + 1, n - k) and beta.ppf(0.05, k, n - k + 1)
        (0, 60, 0.0, 0.048703),
        (3, 500, 0.001638, 0.015438),
        (20, 20, 0.860892, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_bounds_are_exact(k: int, n: int, lower: float, upper: float) -> None:
    """Each bound is one-sided at 95 %, and nothing tried bounds nothing."""
    assert clopper_pearson(k, n) == pytest.approx((lower, upper), abs=1e-5)


def test_false_alarms_are_counted_by_case_and_by_run() -> None:
    """Effects are those of unchanged runs."""
    found = certificate([trial(), trial(prefill=Outcome.REGRESSED, decode=Outcome.REGRESSED), trial(SLOWED)])
    assert (found.false_alarms.k, found.false_alarms.n) == (2, 6)
    assert (found.suite_false_alarms.k, found.suite_false_alarms.n) == (1, 2)
    assert (found.phase_false_alarms.k, found.phase_false_alarms.n) == (2, 4)
    assert (found.passes.k, found.passes.n) == (4, 6)
    assert found.smallest_effect_ratio == {"prefill": 1.03, "decode": 1.03}


def test_power_is_by_size_and_phase() -> None:
    """A slowdown is found where its phase is REGRESSED; improved or undecided is a miss."""
    found = certificate(
        [
            trial(SLOWED, prefill=Outcome.REGRESSED, decode=Outcome.REGRESSED),
            trial(SLOWED, prefill=Outcome.INCONCLUSIVE, decode=Outcome.REGRESSED),
            trial(Truth(phase_ratio=0.1), prefill=Outcome.IMPROVED),
        ]
    )
    assert list(found.power) == ["0.05", "0.1"]
    power = found.power["0.05"]
    assert (power.all.k, power.all.n) == (3, 4)
    assert {phase: rate.k for phase, rate in power.by_phase.items()} == {"prefill": 1, "decode": 2}
    assert found.power["0.1"].all.k == 0


def test_the_named_operator_counts() -> None:
    truth = Truth(operator="ffn_up", operator_ratio=0.2)
    found = certificate([trial(truth, carrier="ffn_up"), trial(truth, carrier="rest"), trial(truth), trial()])
    assert (found.attributions.k, found.attributions.n) == (1, 3)


def test_trials_under_load_or_spoilt_by_competition_count_for_themselves() -> None:
    """Neither makes another rate look better or worse."""
    found = certificate([trial(), trial(Truth(is_loaded=True), decode=Outcome.REGRESSED)])
    assert found.false_alarms.k == 0
    assert (found.loaded_false_alarms.k, found.loaded_false_alarms.n) == (1, 3)
    invalid = CaseAnswer(outcome=Outcome.INVALID, change_ratio=None, smallest_effect_ratio=None)
    found = certificate([trial(), replace(trial(), answers=dict.fromkeys(trial().answers, invalid))])
    assert (found.n_invalid, found.suite_false_alarms.n, found.false_alarms.n) == (1, 1, 3)


def test_peers_are_judged_by_the_same_trials() -> None:
    (peer,) = certificate([trial(peer=True), trial(), trial(SLOWED, peer=True)]).peers
    assert (peer.name, peer.false_alarms.k, peer.false_alarms.n) == ("a rule", 1, 4)
    assert (peer.power["0.05"].all.k, peer.power["0.05"].all.n) == (1, 2)


def test_nothing_tried_is_nothing_known() -> None:
    found = certificate([])
    assert (found.false_alarms.ratio, found.mean_pairs, found.longest_duration_s, found.peers) == (None, None, None, ())
