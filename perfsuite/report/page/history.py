"""The history as one page: every case over its runs, devices and boards in one chart, with what changed and when."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from markupsafe import Markup

from perfsuite import __version__
from perfsuite.errors import PerfsuiteError
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.charts.axes import Axis, TimeScale, level_axis, linear_axis, log_axis
from perfsuite.report.charts.svg import Canvas, Look, legend, look_of, rule
from perfsuite.report.page.render import rendered
from perfsuite.report.visible import visible
from perfsuite.units import format_change, format_count, format_ns

#: Charts of a page, points of all of them together, and the fewest of one line.
MAX_CASES, MAX_POINTS, LEAST_POINTS = 300, 12_000, 40
#: Cases that are open at first, changes of the head, and cases and commits that it names of each.
_MOST_OPEN, _MOST_CHANGES, _MOST_NAMED, _MOST_COMMITS = 6, 5, 3, 3
_HEIGHT, _MOST_DOTS, _MOST_DATES, _N_DASHES = 150, 120, 5, 6
#: From this ratio of the slowest to the fastest time on, an axis is logarithmic.
_FAR = 3.0
_S_PER_DAY = 86_400.0
_CHANGED, _ANOTHER = Look(colour="ink", shape="down"), Look(colour="k5", shape="square")


#: A device and the identity of its board.
LineKey: TypeAlias = tuple[str, str]
#: The runs of each device and board.
_Lines: TypeAlias = dict[LineKey, list[TrendPoint]]


def line_key(point: TrendPoint) -> LineKey:
    """Return what the runs of one line share: the device, and the board where runs are kept by boards."""
    return point.device, point.kept_by or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMark:
    """A place in the history of one case at which something changed."""

    #: The last run before, and the first after.
    before: TrendPoint
    after: TrendPoint
    ratio: float
    #: How much and how sure, or what is another, in a line.
    text: str
    #: The commits in between, the newest first, and what else is to be said of them.
    commits: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    #: Whether the machine became another, and not the case another level.
    is_machine: bool = False

    @property
    def when(self) -> str:
        """Between which days."""
        days = dict.fromkeys(f"{each.started_at:%Y-%m-%d}" for each in (self.before, self.after))
        return " to ".join(days)

    @property
    def change(self) -> str:
        """How much, alone."""
        return format_change(self.ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Cases that changed between the same days: one cause is likely."""

    when: str
    n_cases: int
    places: tuple[str, ...]
    #: The changes of cases on the page that weigh most, phases first, each case once.
    named: tuple[ChangeMark, ...]
    commits: tuple[str, ...]
    n_more_commits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHistory:
    """One case, on all devices and boards."""

    case_id: str
    #: Of each device and board the newest time.
    newest: tuple[tuple[str, str], ...]
    changes: tuple[ChangeMark, ...]
    drawing: Markup
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryView:
    """What the page shows."""

    title: str
    #: In sentences: what is there, what changed, and what was left out for the page's size.
    summary: str
    notes: tuple[str, ...]
    #: The newest changes, and how many there are besides.
    changes: tuple[Together, ...]
    n_more_changes: int
    cases: tuple[CaseHistory, ...]
    #: What each device and board is called.
    names: Mapping[LineKey, str]
    #: Of the charts: each run's place, moment and commit, and by case the unit and the points of each line.
    data: dict[str, Any]
    suite_version: str

    def place(self, point: TrendPoint) -> str:
        """Name what a run was made on."""
        return self.names[line_key(point)]


def place_names(points: Iterable[TrendPoint]) -> dict[LineKey, str]:
    """Name each device, and its board where runs are kept by boards.

    A board has its host name; boards that share one have their identities as well.
    """
    named, short = {}, {}
    for each in points:
        named[line_key(each)] = short[line_key(each)] = each.device
        if each.board is not None and each.kept_by is not None:
            named[line_key(each)] = f"{each.device}, board {each.board.text}"
            short[line_key(each)] = f"{each.device}, board {each.board.hostname or each.board.identity[:8]}"
    counts = Counter(short.values())
    return {key: visible(name if counts[name] == 1 else named[key]) for key, name in short.items()}


def write_history_page(points: Sequence[TrendPoint], marks: Sequence[ChangeMark], path: Path) -> Path:
    """Write the page about the runs of a history, sorted by case, device and time; return its path.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    page = rendered("history.html.j2", "history.js", view=history_view(points, marks))
    write_whole_bytes(path, page.encode("utf-8"), PerfsuiteError)
    return path


def history_view(points: Sequence[TrendPoint], marks: Sequence[ChangeMark]) -> HistoryView:
    """Return what the page shows of these runs."""
    known = [each for each in points if each.measured_ns is not None and each.measured_ns > 0]
    by_case = {case_id: _lines(of_case) for case_id, of_case in groupby(known, key=lambda each: each.case_id)}
    real = sorted((each for each in marks if not each.is_machine), key=lambda each: each.after.started_at, reverse=True)
    changed = {each.after.case_id for each in real}
    order = sorted(by_case, key=lambda case_id: (case_id not in changed, _kind_place(case_id)))
    lines = {case_id: by_case[case_id] for case_id in order[:MAX_CASES]}
    most = max(LEAST_POINTS, MAX_POINTS // max(1, sum(map(len, lines.values()))))
    names = place_names([*known, *(each.after for each in marks)])
    runs = _Runs.of([each for of_case in lines.values() for line in of_case.values() for each in line])
    charts, cases = [], []
    for place, (case_id, of_case) in enumerate(lines.items()):
        changes = sorted(
            (each for each in marks if each.after.case_id == case_id), key=lambda each: each.after.started_at
        )
        drawing, plain = _chart(of_case, changes, runs, names, most)
        charts.append(plain)
        cases.append(
            CaseHistory(
                case_id=case_id,
                newest=tuple((names[key], format_ns(line[-1].measured_ns)) for key, line in of_case.items()),
                changes=tuple(changes),
                drawing=drawing,
                is_open=place < _MOST_OPEN,
            )
        )
    together = _together(real, names, lines)
    return HistoryView(
        title=f"History of {format_count(len(by_case), 'case')}",
        summary=_summary(known, real),
        notes=tuple(_notes(len(order), lines, most)),
        changes=together[:_MOST_CHANGES],
        n_more_changes=max(0, len(together) - _MOST_CHANGES),
        cases=tuple(cases),
        names=names,
        data={"runs": runs.plain(), "charts": charts},
        suite_version=__version__,
    )


def _together(
    marks: Sequence[ChangeMark], names: Mapping[LineKey, str], shown_ids: Collection[str]
) -> tuple[Together, ...]:
    """Group changes by the days between which they lie, the newest first."""
    groups: dict[str, list[ChangeMark]] = {}
    for each in marks:
        groups.setdefault(each.when, []).append(each)
    together = []
    for when, found in groups.items():
        ordered = sorted(found, key=lambda each: (_kind_place(each.after.case_id)[0], -abs(each.ratio - 1.0)))
        by_case = {each.after.case_id: each for each in reversed(ordered)}
        named = [each for each in ordered if by_case[each.after.case_id] is each and each.after.case_id in shown_ids]
        commits = tuple(dict.fromkeys(line for each in ordered for line in each.commits))
        together.append(
            Together(
                when=when,
                n_cases=len(by_case),
                places=tuple(sorted({names[line_key(each.after)] for each in found})),
                named=tuple(named[:_MOST_NAMED]),
                commits=commits[:_MOST_COMMITS],
                n_more_commits=max(0, len(commits) - _MOST_COMMITS),
            )
        )
    return tuple(together)


def _kind_place(case_id: str) -> tuple[bool, str]:
    return not case_id.startswith("phase/"), case_id


def _summary(known: Sequence[TrendPoint], changes: Sequence[ChangeMark]) -> str:
    if not known:
        return "There is no measured run."
    runs, places = {each.run_id for each in known}, {line_key(each) for each in known}
    moments = [each.started_at for each in known]
    span = (
        f"{format_count(len(runs), 'run')} on {format_count(len(places), 'board' if has_boards(known) else 'device')}, "
        f"{min(moments):%Y-%m-%d} to {max(moments):%Y-%m-%d}."
    )
    if not changes:
        return f"{span} No change point is known."
    cases = {each.after.case_id for each in changes}
    return f"{span} {format_count(len(changes), 'change point')} in {format_count(len(cases), 'case')}."


def _notes(n_cases: int, lines: Mapping[str, _Lines], most: int) -> Iterator[str]:
    yield "A change point is advice: no outcome and no exit code rests on it."
    longest = max((len(line) for of_case in lines.values() for line in of_case.values()), default=0)
    if longest > most:
        yield (
            f"Lines of more than {most} runs are thinned out: a point is one real run, the one with the median time of "
            f"up to {-(-longest // most)} runs of one fingerprint between two changes."
        )
    if n_cases > len(lines):
        left = format_count(n_cases - len(lines), "case")
        yield f"{left} of the {n_cases} not shown, to keep the page small: 'perfsuite history page PATTERN' chooses."


def _lines(points: Iterable[TrendPoint]) -> _Lines:
    """Return the runs of each device and board in the order of time."""
    ordered = sorted(points, key=lambda each: (line_key(each), each.started_at))
    return {key: list(line) for key, line in groupby(ordered, key=line_key)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """The runs of all charts, in the order of time, on one axis."""

    order: tuple[TrendPoint, ...]
    places: Mapping[str, int]
    axis: Axis

    @classmethod
    def of(cls, points: Sequence[TrendPoint]) -> _Runs:
        order = tuple(sorted({each.run_id: each for each in points}.values(), key=lambda each: each.started_at))
        days = [_day(each.started_at) for each in order] or [0.0]
        room = (days[-1] - days[0]) * 0.01
        return cls(
            order=order,
            places={each.run_id: place for place, each in enumerate(order)},
            axis=linear_axis("", days[0] - room, days[-1] + room),
        )

    @property
    def dates(self) -> list[tuple[float, str]]:
        """A few days, for below a chart."""
        if len(self.order) < 2:
            return [(_day(each.started_at), f"{each.started_at:%m-%d}") for each in self.order]
        first, last = (self.order[end].started_at for end in (0, -1))
        step = (last - first) / (_MOST_DATES - 1)
        moments = [first + step * number for number in range(_MOST_DATES)]
        return [(_day(each), label) for each, label in zip(moments, _date_labels(moments), strict=True)]

    def plain(self) -> list[list[Any]]:
        """Each run's place across, per mille, the number of its moment, the moment and the commit."""
        numbers: dict[datetime, int] = {}
        return [
            [
                round(self.axis.part(_day(each.started_at)) * 1000),
                numbers.setdefault(each.started_at, len(numbers)),
                f"{each.started_at:%Y-%m-%d %H:%M}",
                _commit(each),
            ]
            for each in self.order
        ]


def _day(moment: datetime) -> float:
    return moment.timestamp() / _S_PER_DAY


def _date_labels(moments: Sequence[datetime]) -> list[str]:
    """Write days; of a short time with the hour, of several years as months."""
    if moments[0].year != moments[-1].year:
        return [f"{each:%Y-%m}" for each in moments]
    is_short = (moments[-1] - moments[0]).days < _MOST_DATES - 1
    return [f"{each:%m-%d %H:%M}" if is_short else f"{each:%m-%d}" for each in moments]


def _commit(point: TrendPoint) -> str:
    commit = point.commit
    if commit is None:
        return ""
    branch = f" on {commit.branch}" if commit.branch else ""
    return visible(f", commit {commit.sha[:10]}{branch}{', with changes' if commit.is_dirty else ''}")


def _thinned(line: Sequence[TrendPoint], changed_at: Sequence[datetime], most: int) -> list[TrendPoint]:
    """Return a line; of a long one, of every few runs the one with the median time, of two the faster one.

    Runs of two fingerprints, or from both sides of a change, are never taken together.
    """
    n_together = -(-len(line) // most)
    levels: dict[tuple[int, str | None], list[TrendPoint]] = {}
    for each in line:
        levels.setdefault((bisect_right(changed_at, each.started_at), each.fingerprint_digest), []).append(each)
    few = (level[start : start + n_together] for level in levels.values() for start in range(0, len(level), n_together))
    middles = (sorted(each, key=lambda run: run.measured_ns or 0)[(len(each) - 1) // 2] for each in few)
    return sorted(middles, key=lambda each: each.started_at)


def _chart(
    by_key: _Lines, changes: Sequence[ChangeMark], runs: _Runs, names: Mapping[LineKey, str], most: int
) -> tuple[Markup, dict[str, Any]]:
    """Draw a case; return its chart and what the script tells of its points."""
    changed_at = {key: [each.after.started_at for each in changes if line_key(each.after) == key] for key in by_key}
    thin = {key: _thinned(line, changed_at[key], most) for key, line in by_key.items()}
    every = [each for line in thin.values() for each in line]
    scale = TimeScale.of(each.measured_ns or 0 for each in every)
    values = [scale(each.measured_ns or 0) for each in every]
    title = scale.title("time of a run")
    is_far = max(values) > _FAR * min(values) > 0.0
    y = log_axis(values, title) if is_far else level_axis(title, values)
    canvas = Canvas(x=runs.axis, y=y, height=_HEIGHT)
    looks, curves = [], []
    for place, line in enumerate(thin.values()):
        look = Look(colour=look_of(place).colour, shape="square" if place % 2 else "circle")
        looks.append(look)
        # a line breaks where its fingerprint changes: times before and after are no series
        for _, part in groupby(line, key=lambda each: each.fingerprint_digest):
            curves.append((f"{look.colour} d{place % _N_DASHES} {look.shape}", [_place(each, scale) for each in part]))
        if len(line) <= _MOST_DOTS:
            curves.append((f"{look.colour} dots {look.shape}", [_place(each, scale) for each in line]))
    n_runs = format_count(sum(map(len, by_key.values())), "run")
    summary = f"{every[0].case_id} over {n_runs}: " + "; ".join(
        f"{names[key]} {format_ns(line[0].measured_ns)} to {format_ns(line[-1].measured_ns)}"
        for key, line in by_key.items()
    )
    seams = [part for each in changes for part in _seam(canvas, each, names[line_key(each.after)])]
    drawn = canvas.plot([*seams, canvas.curves(curves)], summary, runs.dates)
    told = {
        "unit": scale.unit,
        "lines": [
            [names[key], [part for each in line for part in (runs.places[each.run_id], _place(each, scale)[1])]]
            for key, line in thin.items()
        ],
    }
    return legend(zip((names[key] for key in thin), looks, strict=True)) + drawn, told


def _place(point: TrendPoint, scale: TimeScale) -> tuple[float, float]:
    return _day(point.started_at), scale(point.measured_ns or 0)


def _seam(canvas: Canvas, change: ChangeMark, name: str) -> Iterator[Markup]:
    day = _day(change.after.started_at)
    yield rule(canvas.x.part(day), 0, canvas.x.part(day), canvas.height, "seam")
    look = _ANOTHER if change.is_machine else _CHANGED
    yield canvas.mark(day, canvas.y.high, look, f"{change.when}, {name}: {change.text}")
