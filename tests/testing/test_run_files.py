"""Made-up runs."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.report.run_file import plain_run, read_run_file, write_run
from perfsuite.testing.run_files import CHOSEN_CASES, HOSTILE_NAMES, synthetic_run


def test_every_character_with_a_meaning_somewhere_is_among_them() -> None:
    """What HTML, Markdown, CSV, labels, templates or a terminal take for their own; each name once, one of 300.

    So are right-to-left letters, the override of the direction, and pictures that are joined.
    """
    used = set("".join(HOSTILE_NAMES))
    assert set("<>&\"'`{}[]()|\\%$#*_~!=+-@,;:/") | {"\n", "\t", "\x1b", "\u200d"} <= used
    assert {"R", "AL", "RLO"} <= {unicodedata.bidirectional(each) for each in used}
    assert len({name.strip() for name in HOSTILE_NAMES}) == len(HOSTILE_NAMES)
    assert max(map(len, HOSTILE_NAMES)) == 300
    assert [name.encode().decode() for name in HOSTILE_NAMES] == list(HOSTILE_NAMES)


@pytest.mark.parametrize("n_cases", [60, 500])
def test_every_outcome_is_there(n_cases: int) -> None:
    """A run of 60 cases has all nine outcomes, and one of 500 too."""
    assert {each.outcome for each in synthetic_run(n_cases=n_cases).judgements} == set(Outcome)


@pytest.mark.parametrize("n_regressed", [0, 1, 5, 9])
def test_as_many_regress_as_wanted(n_regressed: int) -> None:
    """The first of the chosen cases regress, then operators, and never more than was asked for."""
    found = [
        each.case_id for each in synthetic_run(n_regressed=n_regressed).judgements if each.outcome.value == "regressed"
    ]
    assert len(found) == n_regressed
    assert set(list(CHOSEN_CASES)[:n_regressed]) <= set(found)


def test_operators_that_regressed_carry_their_phase() -> None:
    """The loss of each phase is that of its carriers and what they leave over."""
    run = synthetic_run()
    losses = {each.case_id: each.lost_ns for each in run.judgements}
    assert len(run.attribution.phases) == 2
    for phase in run.attribution.phases:
        assert phase.lost_ns == losses[phase.case_id]
        assert phase.lost_ns == sum(each.lost_ns for each in phase.carriers) + phase.unexplained_ns
        assert [each.role for each in phase.carriers] == ["ffn_swiglu"]
        assert 0.9 < phase.carriers[0].share_ratio < 1.1


def test_runs_are_made_by_their_seed() -> None:
    """Equal arguments make equal runs; another seed or time makes another id, and another seed other samples."""
    assert synthetic_run(seed=3) == synthetic_run(seed=3)
    later = synthetic_run(seed=3, started_at="2026-03-02T02:00:00.000+00:00")
    assert later.origin.run_id != synthetic_run(seed=3).origin.run_id
    assert later.judgements == synthetic_run(seed=3).judgements
    assert synthetic_run(seed=4).judgements[0].samples_ns != later.judgements[0].samples_ns


def test_a_run_can_be_without_pairs() -> None:
    """A run that was compared with nothing in pairs has changes by its baselines alone."""
    run = synthetic_run(against=None)
    assert run.against is None
    assert not any(each.n_pairs or each.baseline_samples_ns for each in run.judgements)
    assert not any(argument.startswith("--against") for argument in run.origin.arguments)


def test_names_are_wherever_somebody_chooses_words() -> None:
    """Every name is that of a case; device, workload, subject, environment, branch and carriers have one too."""
    run = synthetic_run(names=HOSTILE_NAMES)
    assert {f"tokenizer/{name}" for name in HOSTILE_NAMES} <= {each.case_id for each in run.judgements}
    assert run.origin.commit is not None
    words = [run.device, run.workload, run.subjects["llama"], run.origin.commit.branch, run.against]
    words += [run.attribution.phases[0].carriers[0].role, *run.origin.environment.values()]
    assert set(words) <= set(HOSTILE_NAMES)


@pytest.mark.parametrize("names", [(), HOSTILE_NAMES], ids=["usual", "hostile"])
def test_a_run_is_read_as_it_was_written(names: tuple[str, ...], tmp_path: Path) -> None:
    """What a file can hold is what the run holds."""
    run = synthetic_run(n_cases=120, names=names)
    assert read_run_file(write_run(run, tmp_path)) == run
    json.dumps(plain_run(run), allow_nan=False)
