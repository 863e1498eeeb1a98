"""The accuracies of a study's models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.plan import StudyPlan
from perfsuite.experiments.study.scores import read_scores
from tests.experiments.study.conftest import NUMBERS, REFERENCE, accuracies


def test_each_run_has_its_score_in_each_task(plan: StudyPlan) -> None:
    """By name, beside the reference's, under the name that the file has for the metric."""
    (of_task,) = read_scores(plan)
    assert {name: score.accuracy for name, score in of_task.of_runs.items()} == {
        name: numbers[0] for name, numbers in NUMBERS.items()
    }
    assert (of_task.reference.accuracy, of_task.reference.metric) == (REFERENCE, "acc,none")


def test_one_scale_normalises_all(plan: StudyPlan) -> None:
    """The reference is 1, and guessing, where the task says how good it is, 0."""
    (plain,) = read_scores(plan)
    (above_chance,) = read_scores(replace(plan, tasks=(replace(plan.tasks[0], chance=0.25),)))
    assert [plain.scale.normalised(each) for each in (0.8, 0.4)] == [1.0, 0.5]
    assert [above_chance.scale.normalised(each) for each in (0.8, 0.25)] == [1.0, 0.0]


def test_a_reference_that_guesses_is_refused(plan: StudyPlan) -> None:
    """With the task and the reference's name."""
    with pytest.raises(PerfsuiteError, match=r"task 'arc_easy', reference ref: accuracy of the reference is 0\.8"):
        read_scores(replace(plan, tasks=(replace(plan.tasks[0], chance=0.9),)))


def test_another_metric_of_the_same_name_is_refused(plan: StudyPlan, tmp_path: Path) -> None:
    """A filter of its own is another metric; files without filters have the same one."""
    accuracies(tmp_path, "ref", REFERENCE, metric="acc")
    assert read_scores(plan)[0].reference.metric == "acc"
    accuracies(tmp_path, "ref", REFERENCE, metric="acc,strict-match")
    with pytest.raises(PerfsuiteError, match="metric is acc,none of small f16, acc,strict-match of ref"):
        read_scores(plan)
