"""A study for people: a table a task, H_Q, and a sentence on each frontier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from perfsuite.cli.answer import Part, Sheet, figure
from perfsuite.experiments.study.joined import Study, TaskFrontier, TokenKind
from perfsuite.experiments.study.token_latency import TokenLatency
from perfsuite.units import NS_PER_S, format_count, format_ns


def study_parts(study: Study) -> Iterator[Part]:
    """Yield everything that a study concludes."""
    for task in dict.fromkeys(point.task for point in study.points):
        yield _task_sheet(study, task)
        yield from (_sentence(each) for each in study.frontiers if each.task == task)
    if study.quantizations:
        yield _quantization_sheet(study)
        for task, mean in study.mean_scores().items():
            yield f"{task}: mean H_Q {figure('{:.3f}', mean)}"


def plan_parts(study_runs: Mapping[str, TokenLatency | None], n_workloads: int, n_processes: int) -> Iterator[Part]:
    """Yield where each latency will come from, and how many processes that takes."""
    rows = [(name, latency.source if latency else "to be measured") for name, latency in study_runs.items()]
    yield Sheet(("run", "latency"), rows)
    said = format_count(n_workloads, "workload")
    yield f"{said} to be measured, {n_processes} fresh processes each, more where one is disturbed"


def _task_sheet(study: Study, task: str) -> Sheet:
    return Sheet(
        ("<run", ">accuracy", ">normalised", ">input token", ">output token", ">frontier"),
        [
            (
                *(point.run.name, f"{point.score.accuracy:.4f}", f"{point.normalised_accuracy:.4f}"),
                *(format_ns(point.latency_s(kind) * NS_PER_S) for kind in TokenKind),
                _places(study, task, point.run.name),
            )
            for point in study.points
            if point.task == task
        ],
        f"{task}, accuracy normalised to {study.plan.reference}",
    )


def _places(study: Study, task: str, name: str) -> str:
    """Say on which frontiers a run is, and of which it is the knee."""
    found = []
    for kind in TokenKind:
        frontier = study.frontier(task, kind)
        if frontier.knee is not None and frontier.knee.name == name:
            found.append(f"{kind.value} (knee)")
        elif name in [each.name for each in frontier.members]:
            found.append(kind.value)
    return ", ".join(found) or "-"


def _sentence(found: TaskFrontier) -> str:
    names = ", ".join(each.name for each in found.frontier.members)
    knee = found.frontier.knee.name if found.frontier.knee else "none"
    of_suite = f" of {found.suite}" if found.suite else ""
    return f"frontier{of_suite} by {found.kind.value} tokens: {names}; knee: {knee}"


def _quantization_sheet(study: Study) -> Sheet:
    rows = []
    for row in study.quantizations:
        ratios = row.ratios
        parts = (ratios.accuracy_ratio, ratios.prefill_ratio, ratios.decode_ratio) if ratios else (None,) * 3
        figures = (figure("{:.3f}", value) for value in (*parts, row.score))
        rows.append((row.task, row.run.model, row.original.quantization, row.run.quantization, *figures))
    headings = ("task", "model", ">original", ">quantised", ">M_a", ">M_prefill", ">M_decode", ">H_Q")
    return Sheet(headings, rows)
