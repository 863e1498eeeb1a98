"""Scores of language models as lm-evaluation-harness writes them: ``results_<time>.json``.

*Source*: EleutherAI/lm-evaluation-harness. From release 0.4 on a metric is called by its name and the filter of its
answers, ``acc_norm,none`` or ``exact_match,strict-match``; before, by its name alone. Beside it stands its standard
error, ``acc_norm_stderr,none``, and of the task its ``alias``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.plan_file import StudyPlan, StudyTask
from perfsuite.records.codec import from_plain, plain_json

_STDERR = "_stderr"
#: Numbers of a task that are no scores.
_NO_METRICS = ("sample_len", "sample_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessScore:
    """One score of one task."""

    #: As the file calls it, such as ``acc_norm,none``.
    metric: str
    #: From 0 to 1.
    accuracy: float
    #: None where the file tells none, or NaN, which is none.
    stderr: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Results:
    #: By task and metric.
    results: Mapping[str, Mapping[str, Any]]


def read_harness_score(paths: Sequence[Path], task: str, metric: str) -> HarnessScore:
    """Find a task's metric in the files that hold a model's scores.

    `metric` is a name with its filter, or the name alone where it has one filter, or the file none.

    Raises `PerfsuiteError`: a file cannot be read or holds no results, no file or more than one has the task, the task
    lacks the metric or has it with several filters, or it or its standard error is no number of 0 to 1; the message
    tells what there is.
    """
    files = {path: _read_tasks(path) for path in paths}
    found = {path: tasks[task] for path, tasks in files.items() if task in tasks}
    if len(found) != 1:
        names, there = (
            ", ".join(map(str, found or paths)),
            ", ".join(sorted({name for each in files.values() for name in each})),
        )
        seen = f"is in {len(found)} of the files" if found else f"is not there; tasks are {there or 'none'}"
        raise PerfsuiteError(f"{names}: task {task!r} {seen}")
    ((path, metrics),) = found.items()
    where = f"{path}: task {task!r}"
    name = _metric_name(where, metrics, metric)
    accuracy, stderr = _share(where, name, metrics[name]), _stderr(where, metrics, name)
    return HarnessScore(metric=name, accuracy=accuracy, stderr=stderr)


def _read_tasks(path: Path) -> Mapping[str, Mapping[str, Any]]:
    todo = "name a results file of lm-evaluation-harness"
    plain = plain_json(path, PerfsuiteError, todo, allows_nan=True)
    return from_plain(plain, _Results, str(path), PerfsuiteError, todo).results


def _metric_name(where: str, metrics: Mapping[str, Any], metric: str) -> str:
    known = [name for name, value in metrics.items() if _is_metric(name, value)]
    for name in (metric, metric.removesuffix(",none")):
        if name in known:
            return name
    found = [name for name in known if name.split(",")[0] == metric]
    if len(found) == 1:
        return found[0]
    if found:
        raise PerfsuiteError(f"{where}: metric {metric!r} has the filters of {', '.join(found)}; name one of them")
    raise PerfsuiteError(f"{where}: metric {metric!r} is not there; metrics are {', '.join(known) or 'none'}")


def _is_metric(name: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_name = name.isprintable() and name not in _NO_METRICS
    return is_number and is_name and not name.split(",")[0].endswith(_STDERR)


def _share(where: str, name: str, value: float) -> float:
    """Return a share; a whole number may be too large for a float."""
    if not 0.0 <= value <= 1.0:
        raise PerfsuiteError(f"{where}: {name} is {str(value)[:40]}, expected a share of 0 to 1")
    return float(value)


def _stderr(where: str, metrics: Mapping[str, Any], metric: str) -> float | None:
    """Return the standard error; the harness writes N/A where it computes none, and NaN where it cannot."""
    bare, comma, answers = metric.partition(",")
    name = f"{bare}{_STDERR}{comma}{answers}"
    value = metrics.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    return _share(where, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScores:
    """All scores of one task."""

    task: StudyTask
    #: Accuracy of the reference, by which every model's is normalised, the originals' and the quantised ones' alike.
    reference: float
    #: By name of the run.
    of_runs: Mapping[str, HarnessScore]

    def normalised(self, accuracy: float) -> float:
        """Return (accuracy - chance) / (reference - chance): 1 for the reference, 0 for guessing."""
        return (accuracy - self.task.chance) / (self.reference - self.task.chance)


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
        if score.metric.removesuffix(",none") != reference.metric.removesuffix(",none"):  # which old files leave out
            raise PerfsuiteError(
                f"task {task.name!r}: metric is {score.metric} of {name}, {reference.metric} of {plan.reference}; name "
                "one that both have"
            )
    if reference.accuracy <= task.chance:
        told = f"accuracy of the reference is {reference.accuracy:g} and of guessing {task.chance:g}"
        todo = "expected 0 <= guessing < reference <= 1"
        raise PerfsuiteError(f"task {task.name!r}, reference {plan.reference}: {told}; {todo}")
    return TaskScores(task=task, reference=reference.accuracy, of_runs=of_runs)
