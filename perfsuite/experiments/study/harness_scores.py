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
from perfsuite.experiments.study.quantization_score import AccuracyScale
from perfsuite.records.codec import from_plain, plain_json

_STDERR = "_stderr"
#: Numbers of a task that are no scores.
_NO_METRICS = ("sample_len", "sample_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessScore:
    """One score of one task."""

    task: str
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
    found = {path: tasks[task] for path in paths if task in (tasks := _read_tasks(path))}
    if len(found) != 1:
        names = ", ".join(map(str, found or paths))
        seen = f"is in {len(found)} of the files" if found else f"is not there; tasks are {_task_names(paths)}"
        raise PerfsuiteError(f"{names}: task {task!r} {seen}")
    ((path, metrics),) = found.items()
    where = f"{path}: task {task!r}"
    name = _metric_name(where, metrics, metric)
    accuracy, stderr = _share(where, name, metrics[name]), _stderr(where, metrics, name)
    return HarnessScore(task=task, metric=name, accuracy=accuracy, stderr=stderr)


def _read_tasks(path: Path) -> Mapping[str, Mapping[str, Any]]:
    todo = "name a results file of lm-evaluation-harness"
    plain = plain_json(path, PerfsuiteError, todo, allows_nan=True)
    return from_plain(plain, _Results, str(path), PerfsuiteError, todo).results


def _task_names(paths: Sequence[Path]) -> str:
    return ", ".join(sorted({task for path in paths for task in _read_tasks(path)})) or "none"


def _metric_name(where: str, metrics: Mapping[str, Any], metric: str) -> str:
    if metric in metrics and _is_metric(metric, metrics[metric]):
        return metric
    bare, _, answers = metric.partition(",")
    if answers == "none" and bare in metrics and _is_metric(bare, metrics[bare]):
        return bare
    found = [name for name, value in metrics.items() if name.split(",")[0] == metric and _is_metric(name, value)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(name for name, value in metrics.items() if _is_metric(name, value)) or "none"
    if found:
        raise PerfsuiteError(f"{where}: metric {metric!r} has the filters of {', '.join(found)}; name one of them")
    raise PerfsuiteError(f"{where}: metric {metric!r} is not there; metrics are {there}")


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
