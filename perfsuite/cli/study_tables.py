"""A study for people: a table a task, H_Q, and a sentence on each frontier."""

from __future__ import annotations

from collections.abc import Mapping

from rich.markup import escape
from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.units import NS_PER_S, format_count, format_ns
from perfsuite.verdict.study.joined import Study, TaskFrontier, TokenKind
from perfsuite.verdict.study.token_latency import TokenLatency

_NONE = "-"


def show_study(study: Study) -> None:
    """Print everything that a study concludes."""
    for task in dict.fromkeys(point.task for point in study.points):
        show(_task_table(study, task))
        for each in study.frontiers:
            if each.task == task:
                print(_sentence(each))
    if study.quantizations:
        show(_quantization_table(study))
        for task, mean in study.mean_scores().items():
            print(f"{task}: mean H_Q {_score(mean)}")


def show_plan(study_runs: Mapping[str, TokenLatency | None], n_workloads: int, n_processes: int) -> None:
    """Print where each latency will come from, and how many processes that takes."""
    table = Table("run", "latency", box=None, pad_edge=False)
    for name, latency in study_runs.items():
        table.add_row(escape(name), "to be measured" if latency is None else escape(latency.source))
    show(table)
    said = format_count(n_workloads, "workload")
    print(f"{said} to be measured, {n_processes} fresh processes each, more where one is disturbed")


def _task_table(study: Study, task: str) -> Table:
    title = f"{task}, accuracy normalised to {study.plan.reference}"
    table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)
    for heading in ("accuracy", "normalised", "input token", "output token", "frontier"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in study.points:
        if point.task == task:
            table.add_row(
                escape(point.run.name),
                *(f"{point.score.accuracy:.4f}", f"{point.normalised_accuracy:.4f}"),
                *(format_ns(point.latency_s(kind) * NS_PER_S) for kind in TokenKind),
                _places(study, task, point.run.name),
            )
    return table


def _places(study: Study, task: str, name: str) -> str:
    """Say on which frontiers a run is, and of which it is the knee."""
    found = []
    for kind in TokenKind:
        frontier = study.frontier(task, kind)
        if frontier.knee is not None and frontier.knee.name == name:
            found.append(f"{kind.value} (knee)")
        elif name in [each.name for each in frontier.members]:
            found.append(kind.value)
    return ", ".join(found) or _NONE


def _sentence(found: TaskFrontier) -> str:
    names = ", ".join(each.name for each in found.frontier.members)
    knee = found.frontier.knee.name if found.frontier.knee else "none"
    of_suite = f" of {found.suite}" if found.suite else ""
    return f"frontier{of_suite} by {found.kind.value} tokens: {names}; knee: {knee}"


def _quantization_table(study: Study) -> Table:
    table = Table("task", "model", box=None, pad_edge=False)
    for heading in ("original", "quantised", "M_a", "M_prefill", "M_decode", "H_Q"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in study.quantizations:
        ratios = row.ratios
        parts = (ratios.accuracy_ratio, ratios.prefill_ratio, ratios.decode_ratio) if ratios else (None,) * 3
        table.add_row(
            *map(escape, (row.task, row.run.model, row.original.quantization, row.run.quantization)),
            *map(_score, (*parts, row.score)),
        )
    return table


def _score(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"
