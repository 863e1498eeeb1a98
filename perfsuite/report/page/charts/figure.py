"""A figure of the page: its picture, in words what it shows, and names as it has room for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from perfsuite.records.outcome import Judgement
from perfsuite.report.charts.svg import Canvas, Look, cut_middle, legend, look_of

#: Characters of a name in a legend.
ROW_CHARACTERS = 22

#: Where a point lies on both axes, what it tells where it is pointed at, and marks that it has besides.
Point = tuple[float, float, str, Sequence[Look]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as the page shows it."""

    #: A fixed word, unique on the page, fit for an attribute: ``operators-decode``.
    figure_id: str
    #: Which part of the page it belongs to: operators, roofline, tokens, machine or runs.
    subject: str
    title: str
    #: What is to be seen, in words, for those who do not see it.
    summary: str
    drawing: Markup


def lines_plot(
    series: Mapping[str, Sequence[Point]],
    canvas: Canvas,
    summary: str,
    x_labels: Sequence[tuple[float, str]] | None = None,
    *,
    names_one: bool = False,
) -> Markup:
    """Return lines through the points of each series, with a legend where there are several, or one is named too."""
    looks = [look_of(place) for place in range(len(series))]
    lines = [(look.colour, [each[:2] for each in points]) for look, points in zip(looks, series.values(), strict=True)]
    marks = [canvas.curves(lines)]
    for look, points in zip(looks, series.values(), strict=True):
        marks += [canvas.mark(x, y, look, tip) for x, y, tip, _ in points]
    marks += [canvas.mark(x, y, each, tip) for points in series.values() for x, y, tip, more in points for each in more]
    is_named = names_one or len(series) > 1
    key = legend(zip(short_names(series), looks, strict=True)) if is_named else Markup("")
    return key + canvas.plot(marks, summary, x_labels)


def short_names(names: Iterable[str], most: int = ROW_CHARACTERS) -> tuple[str, ...]:
    """Cut names to so many characters, no two alike: where the middle tells them apart, at an end, else numbered."""
    names = list(names)
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(cut_middle(name, most), []).append(name)
    cuts = {middle: _best_cut(group, most) for middle, group in groups.items()}
    taken: dict[str, None] = {}
    for name in names:
        cut = cuts[cut_middle(name, most)]
        short, number = cut(name, most), 1
        while short in taken:
            number += 1
            short = f"{cut(name, most - 4)} ({number})"
        taken[short] = None
    return tuple(taken)


def _best_cut(alike: Sequence[str], most: int) -> Callable[[str, int], str]:
    """Return the cut that tells the most of these names apart, which are alike when they are cut in the middle."""
    return max((cut_middle, _cut_end, _cut_start), key=lambda cut: len({cut(name, most) for name in alike}))


def _cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cut_start(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[len(text) - most + 1 :]}"


def case_name(judgement: Judgement) -> str:
    """Name a case without what all cases of a run share: ``prefill``, ``decode/ffn_up``, ``gemm/m64-n128-k576/f32``."""
    parts, kind = judgement.case_id.split("/"), judgement.kind
    least = {"phase": 4, "counted": 4, "operator": 5, "engine_kernel": 5}.get(kind)
    if least is not None and len(parts) >= least:
        return "/".join(parts[3:])
    return judgement.case_id.removeprefix(f"{kind}/") or judgement.case_id


def phase_of(judgement: Judgement) -> str | None:
    """Return the phase that an operator is part of; None where its id tells none."""
    parts = judgement.case_id.split("/")
    return parts[3] if judgement.kind == "operator" and len(parts) >= 5 else None


def role_of(judgement: Judgement) -> str:
    """Return what an operator is called within its phase."""
    return "/".join(judgement.case_id.split("/")[4:]) or judgement.case_id
