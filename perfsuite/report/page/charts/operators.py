"""Where the time of each phase goes: its most expensive operators, with what was expected and what they took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from perfsuite.records.events import GRAPH_PHASES
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.svg import Look, block, legend, mark, picture
from perfsuite.report.page.charts.figure import Figure, phase_of, role_of
from perfsuite.report.visible import visible
from perfsuite.units import format_count, format_ns, to_percent

#: Rows of a figure, and operators that its summary tells.
_MOST_ROWS, _MOST_TOLD = 12, 3
_HEIGHT = 18
#: The end of the scale, over the longest bar.
_ROOM = 1.02

_MEASURED = Look(colour="k0", shape="square")
_EXPECTED = Look(colour="k4", shape="diamond")
_FAR = Look(colour="k4", shape="right")
_OLD = Look(colour="k3", shape="bar")


def operators_figures(run: RunFile) -> Iterator[Figure]:
    """Show the most expensive operators of each phase that has any."""
    for phase in (each.value for each in GRAPH_PHASES):
        found = [each for each in run.judgements if phase_of(each) == phase and each.measured_ns]
        if found:
            yield _figure(phase, sorted(found, key=lambda each: -(each.measured_ns or 0)))


def _figure(phase: str, found: Sequence[Judgement]) -> Figure:
    drawn, whole_ns = found[:_MOST_ROWS], sum(each.measured_ns or 0 for each in found)
    most_ns = max(max(filter(None, (each.measured_ns, each.baseline_ns))) for each in drawn) * _ROOM
    told = ", ".join(f"{role_of(each)} {_share(each, whole_ns)}" for each in drawn[:_MOST_TOLD])
    left = len(found) - len(drawn)
    more = f" {format_count(left, 'shorter one')} not drawn." if left else ""
    rows = Markup("").join(_row(each, most_ns, whole_ns) for each in drawn)
    expected_ns = [each.expected_ns or 0 for each in drawn]
    looks = [("measured", _MEASURED)]
    looks += [("expected", _EXPECTED)] if any(0 < each <= most_ns for each in expected_ns) else []
    looks += [("expected, beyond the end", _FAR)] if any(each > most_ns for each in expected_ns) else []
    looks += [("before", _OLD)] if any(each.baseline_ns for each in drawn) else []
    return Figure(
        figure_id=f"operators-{phase}",
        subject="operators",
        title=f"Where the time of {phase} goes",
        summary=f"Of {format_count(len(found), 'operator')} together {format_ns(whole_ns)}: {told}.{more}",
        drawing=Markup('{}<ol class="bars">{}</ol>').format(legend(looks), rows),
    )


def _row(judgement: Judgement, most_ns: float, whole_ns: int) -> Markup:
    return Markup("<li><bdi>{}</bdi>{}<span>{}</span><span>{}</span></li>").format(
        visible(role_of(judgement)),
        picture(_marks(judgement, most_ns), _HEIGHT, "", "bar"),
        format_ns(judgement.measured_ns),
        _share(judgement, whole_ns),
    )


def _marks(judgement: Judgement, most_ns: float) -> Iterator[Markup]:
    """Draw the measured time as a bar; an expectation beyond the longest of them is an arrow at the end."""
    yield block(0.0, (judgement.measured_ns or 0) / most_ns, 4, _HEIGHT - 8, _MEASURED.colour)
    for time_ns, look in ((judgement.baseline_ns, _OLD), (judgement.expected_ns, _EXPECTED)):
        if time_ns:
            yield mark(min(1.0, time_ns / most_ns), _HEIGHT / 2, look if time_ns <= most_ns else _FAR)


def _share(judgement: Judgement, whole_ns: int) -> str:
    share = to_percent((judgement.measured_ns or 0) / whole_ns)
    return f"{share:.0f} %" if share >= 1.0 else "<1 %"
