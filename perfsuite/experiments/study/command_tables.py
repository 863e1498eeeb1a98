"""A study for people: a table a task, H_Q, and a sentence on each frontier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, figure
from perfsuite.experiments.study.joined import Frontier, QuantizationRow, Study, StudyPoint, TokenKind
from perfsuite.experiments.study.plan_file import TokenLatency
from perfsuite.records.chart import Axis, Line, LineRole, PointGroup, XYChart, XYPanel
from perfsuite.units import NS_PER_S, format_count, format_ns


def study_chart(study: Study) -> XYChart:
    """Return two panels a task: against an input token, and against an output token."""
    tasks = dict.fromkeys(point.task for point in study.points)
    return XYChart(
        title=_finding(study, next(iter(tasks))),
        note=f"{study.plan.title}: {format_count(len(study.plan.runs), 'run')}, accuracy normalised to "
        f"{study.plan.reference}; the knee is the member of the frontier that is furthest above its chord",
        n_columns=len(TokenKind),
        panels=tuple(_panel(study, task, kind) for task in tasks for kind in TokenKind),
    )


def _finding(study: Study, task: str) -> str:
    frontier = study.frontier(task, TokenKind.OUTPUT)
    if (knee := frontier.knee) is None:
        return f"{task}: {format_count(len(frontier.members), 'run')} on the frontier of output tokens, without a knee"
    time = format_ns(knee.latency_s(TokenKind.OUTPUT) * NS_PER_S)
    return (
        f"{task}: the knee of the frontier is {knee.run.name}, {time} an output token at "
        f"{knee.normalised_accuracy:.3f} of the reference's accuracy"
    )


def _panel(study: Study, task: str, kind: TokenKind) -> XYPanel:
    frontier = study.frontier(task, kind)
    knee = () if frontier.knee is None else (frontier.knee,)
    rings = (PointGroup(label="knee", x=_x([each], kind), y=_y([each]), is_ring=True) for each in knee)
    line = Line(label="frontier", x=_x(frontier.members, kind), y=_y(frontier.members), role=LineRole.REFERENCE)
    return XYPanel(
        title=f"{task}, {kind.value} tokens",
        x_axis=Axis(label=f"time of an {kind.value} token (s)", least=0.0),
        y_axis=Axis(label=f"accuracy, {study.plan.reference} = 1"),
        groups=(*_groups([point for point in study.points if point.task == task], kind), *rings),
        lines=(line,),
    )


def _x(points: Sequence[StudyPoint], kind: TokenKind) -> tuple[float, ...]:
    return tuple(each.latency_s(kind) for each in points)


def _y(points: Sequence[StudyPoint]) -> tuple[float, ...]:
    return tuple(each.normalised_accuracy for each in points)


def _groups(points: Sequence[StudyPoint], kind: TokenKind) -> Iterator[PointGroup]:
    """Yield a group for each suite and, where there are originals, one for what is quantised."""
    names = {True: "original", False: "quantised"} if any(each.run.is_original for each in points) else {False: ""}
    for suite in dict.fromkeys(point.run.suite for point in points):
        for is_original, name in names.items():
            own = [each for each in points if each.run.suite == suite and each.run.is_original is is_original]
            texts = tuple(each.run.name.removeprefix(f"{suite} ") for each in own)
            if own:
                yield PointGroup(label=suite, kind=name, x=_x(own, kind), y=_y(own), texts=texts)


#: Raised whenever a field changes its meaning.
SCHEMA = 1


def study_plain(study: Study, latencies: Mapping[str, TokenLatency], engine: str) -> dict[str, Any]:
    """Return the study as JSON-able values; its latencies are what ``--from`` reads."""
    plan = study.plan
    told = ("source", "prefill_s_per_token", "decode_s_per_token", "prefill_samples_s", "decode_samples_s")
    return {
        "schema": SCHEMA,
        "title": plan.title,
        "reference": plan.reference,
        "engine": engine or None,
        "n_prompts": len(plan.prompt_lengths),
        "n_prompt_tokens": sum(plan.prompt_lengths),
        "n_gen": plan.n_gen,
        "latencies": {name: fields_of(each, *told) for name, each in latencies.items()},
        "points": [_point_plain(each) for each in study.points],
        "frontiers": [
            {
                **fields_of(each, "task", "suite"),
                "tokens": each.kind.value,
                "members": [member.run.name for member in each.members],
                "knee": each.knee and each.knee.run.name,
            }
            for each in study.frontiers
        ],
        "quantizations": [_quantization_plain(each) for each in study.quantizations],
        "mean_h_q": dict(study.mean_scores()),
    }


def _point_plain(point: StudyPoint) -> dict[str, Any]:
    return {
        "task": point.task,
        "run": point.run.name,
        **fields_of(point.run, "model", "suite", "quantization"),
        **fields_of(point.score, "metric", "accuracy"),
        "accuracy_stderr": point.score.stderr,
        "normalised_accuracy": point.normalised_accuracy,
        **fields_of(point.latency, "prefill_s_per_token", "decode_s_per_token"),
    }


def _quantization_plain(row: QuantizationRow) -> dict[str, Any]:
    m_accuracy, m_prefill, m_decode = row.ratios or (None, None, None)
    return {
        "task": row.task,
        "model": row.run.model,
        "original": row.original.quantization,
        "quantization": row.run.quantization,
        "m_accuracy": m_accuracy,
        "m_prefill": m_prefill,
        "m_decode": m_decode,
        "h_q": row.score,
    }


def study_parts(study: Study) -> Iterator[Part]:
    """Yield everything that a study concludes."""
    for task in dict.fromkeys(point.task for point in study.points):
        yield _task_sheet(study, task)
        yield from (_sentence(each) for each in study.frontiers if each.task == task)
    if study.quantizations:
        yield _quantization_sheet(study)
        for task, mean in study.mean_scores().items():
            yield f"{task}: mean H_Q {figure('{:.3f}', mean)}"


def plan_answer(study_runs: Mapping[str, TokenLatency | None], n_workloads: int, n_processes: int) -> Answer:
    """Return where each latency will come from, and how many processes that takes."""
    rows = [(name, latency and latency.source) for name, latency in study_runs.items()]
    said = format_count(n_workloads, "workload")
    return Answer(
        parts=lambda: (
            Sheet(("run", "latency"), [(name, source or "to be measured") for name, source in rows]),
            f"{said} to be measured, {n_processes} fresh processes each, more where one is disturbed",
        ),
        plain=lambda: {"latencies": dict(rows), "n_workloads": n_workloads, "n_processes": n_processes},
    )


def _task_sheet(study: Study, task: str) -> Sheet:
    return Sheet(
        ("run", ">accuracy", ">normalised", ">input token", ">output token", ">frontier"),
        [
            (
                *(point.run.name, f"{point.score.accuracy:.4f}", f"{point.normalised_accuracy:.4f}"),
                *(format_ns(point.latency_s(kind) * NS_PER_S) for kind in TokenKind),
                _frontiers_of(study, point),
            )
            for point in study.points
            if point.task == task
        ],
        f"{task}, accuracy normalised to {study.plan.reference}",
    )


def _frontiers_of(study: Study, point: StudyPoint) -> str:
    found = (study.frontier(point.task, kind) for kind in TokenKind)
    words = [f"{each.kind.value}{' (knee)' if each.knee == point else ''}" for each in found if point in each.members]
    return ", ".join(words) or "-"


def _sentence(found: Frontier) -> str:
    names, knee = ", ".join(each.run.name for each in found.members), found.knee.run.name if found.knee else "none"
    of_suite = f" of {found.suite}" if found.suite else ""
    return f"frontier{of_suite} by {found.kind.value} tokens: {names}; knee: {knee}"


def _quantization_sheet(study: Study) -> Sheet:
    rows = []
    for row in study.quantizations:
        figures = (figure("{:.3f}", value) for value in (*(row.ratios or (None,) * 3), row.score))
        rows.append((row.task, row.run.model, row.original.quantization, row.run.quantization, *figures))
    headings = ("task", "model", ">original", ">quantised", ">M_a", ">M_prefill", ">M_decode", ">H_Q")
    return Sheet(headings, rows)
