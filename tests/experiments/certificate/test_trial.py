"""Trials in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.experiments.certificate.trial import CaseAnswer, Trial, Truth, append_trial, read_trials
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
    """Each trial is a line; those that are there stay, and a last line that was cut is left out."""
    path = tmp_path / "deep" / "trials.jsonl"
    assert read_trials(path) == ()
    append_trial(path, TRIAL)
    append_trial(path, TRIAL)
    assert read_trials(path) == (TRIAL, TRIAL)
    with path.open("a") as out:
        out.write('{"schema": 1, "tru')
    assert read_trials(path) == (TRIAL, TRIAL)


@pytest.mark.parametrize("line", ["{}", "[]", '{"schema": 99}', "no JSON", '{"schema": 1, "truth": {}}'])
def test_a_line_that_is_no_trial_is_named(line: str, tmp_path: Path) -> None:
    """Another schema or another file is refused with its place."""
    path = tmp_path / "trials.jsonl"
    append_trial(path, TRIAL)
    with path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(MeasurementError, match=r"trials\.jsonl:2: is no trial.*certify anew"):
        read_trials(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """What cannot be read or written is an error that names it."""
    with pytest.raises(MeasurementError, match="cannot be read"):
        read_trials(tmp_path)
    with pytest.raises(MeasurementError, match="cannot be written"):
        append_trial(tmp_path, TRIAL)


def test_a_truth_is_the_same_where_nothing_was_slowed() -> None:
    """A load does not make two sides differ."""
    assert Truth(is_loaded=True).is_same
    assert not Truth(phase_ratio=0.03).is_same
    assert not TRIAL.truth.is_same
