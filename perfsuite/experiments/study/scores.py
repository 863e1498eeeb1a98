"""The accuracies of a study's models, read before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.harness_scores import HarnessScore, read_harness_score
from perfsuite.experiments.study.plan import StudyPlan, StudyTask
from perfsuite.experiments.study.quantization_score import AccuracyScale


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScores:
    """All scores of one task."""

    task: StudyTask
    reference: HarnessScore
    #: What every model's accuracy is normalised by, the originals' and the quantised ones' alike.
    scale: AccuracyScale
    #: By name of the run.
    of_runs: Mapping[str, HarnessScore]


def read_scores(plan: StudyPlan) -> tuple[TaskScores, ...]:
    """Read the scores of the reference and of every run, task by task.

    Raises PerfsuiteError: a file cannot be read, or lacks a task or its metric; a task's metric differs between files;
    or the reference is no better than guessing.
    """
    return tuple(_task_scores(plan, task) for task in plan.tasks)


def _task_scores(plan: StudyPlan, task: StudyTask) -> TaskScores:
    reference = read_harness_score(plan.reference_accuracies, task.name, task.metric)
    of_runs = {run.name: read_harness_score(run.accuracies, task.name, task.metric) for run in plan.runs}
    for name, score in of_runs.items():
        if not _is_same_metric(score.metric, reference.metric):
            raise PerfsuiteError(
                f"task {task.name!r}: metric is {score.metric} of {name}, {reference.metric} of {plan.reference}; name "
                "one that both have"
            )
    try:
        scale = AccuracyScale(reference=reference.accuracy, chance=task.chance)
    except PerfsuiteError as error:
        raise PerfsuiteError(f"task {task.name!r}, reference {plan.reference}: {error}") from None
    return TaskScores(task=task, reference=reference, scale=scale, of_runs=of_runs)


def _is_same_metric(one: str, other: str) -> bool:
    """Whether two names are of one metric: files before release 0.4 leave the filter out where it is none."""
    return one.removesuffix(",none") == other.removesuffix(",none")
