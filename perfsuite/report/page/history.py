"""The history as one page: every case over its runs, devices and boards in one chart, with what changed and when."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from markupsafe import Markup

from perfsuite import __version__
from perfsuite.errors import PerfsuiteError
from perfsuite.records.run_origin import BoardName
from perfsuite.records.trend_point import TrendPoint, has_boards
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.charts.axes import Axis, TimeScale, level_axis, linear_axis, log_axis
from perfsuite.report.charts.svg import Canvas, Look, legend, look_of, rule
from perfsuite.report.page.charts.names import readable
from perfsuite.report.page.render import rendered
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
    boards = {line_key(each): each for each in points}
    short = {key: _place_name(each, lambda board: board.hostname or board.identity[:8]) for key, each in boards.items()}
    counts = Counter(short.values())
    return {
        key: name if counts[name] == 1 else _place_name(boards[key], lambda board: board.text)
        for key, name in short.items()
    }


def _place_name(point: TrendPoint, told: Callable[[BoardName], str]) -> str:
    if point.board is None or point.kept_by is None:
        return readable(point.device)
    return readable(f"{point.device}, board {told(point.board)}")


def write_history_page(points: Sequence[TrendPoint], marks: Sequence[ChangeMark], path: Path) -> Path:
    """Write the page about the runs of a history, sorted by case, device and time; return its path.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    page = rendered("history.html.j2", ("history.js",), view=history_view(points, marks))
    write_whole_bytes(path, page.encode("utf-8"), PerfsuiteError)
    return path


def history_view(points: Sequence[TrendPoint], marks: Sequence[ChangeMark]) -> HistoryView:
    """Return what the page shows of these runs."""
    known = [each for each in points if each.measured_ns is not None and each.measured_ns > 0]
    by_case = {case_id: list(of_case) for case_id, of_case in groupby(known, key=lambda each: each.case_id)}
    changes: dict[str, list[ChangeMark]] = {}
    for each in marks:
        changes.setdefault(each.after.case_id, []).append(each)
    order = sorted(by_case, key=lambda case_id: (not _is_changed(changes.get(case_id, ())), _kind_place(case_id)))
    shown_ids = order[:MAX_CASES]
    lines = {case_id: _lines(by_case[case_id]) for case_id in shown_ids}
    most = max(LEAST_POINTS, MAX_POINTS // max(1, sum(map(len, lines.values()))))
    names = place_names([*known, *(each.after for each in marks)])
    runs = _Runs.of([each for case_id in shown_ids for each in by_case[case_id]])
    about = _About(runs=runs, names=names, most=most)
    drawn = [_case(case_id, lines[case_id], changes.get(case_id, ()), about) for case_id in shown_ids]
    real = sorted((each for each in marks if not each.is_machine), key=lambda each: each.after.started_at, reverse=True)
    together = _together(real, names, frozenset(shown_ids))
    return HistoryView(
        title=f"History of {format_count(len(by_case), 'case')}",
        summary=_summary(known, real),
        notes=tuple(_notes(len(order), lines, most)),
        changes=together[:_MOST_CHANGES],
        n_more_changes=max(0, len(together) - _MOST_CHANGES),
        cases=tuple(
            CaseHistory(
                case_id=case_id,
                newest=tuple((names[key], format_ns(line[-1].measured_ns)) for key, line in lines[case_id].items()),
                changes=tuple(sorted(changes.get(case_id, ()), key=lambda each: each.after.started_at)),
                drawing=chart,
                is_open=place < _MOST_OPEN,
            )
            for place, (case_id, (chart, _)) in enumerate(zip(shown_ids, drawn, strict=True))
        ),
        names=names,
        data={"runs": runs.plain(), "charts": [plain for _, plain in drawn]},
        suite_version=__version__,
    )


def _together(
    marks: Sequence[ChangeMark], names: Mapping[LineKey, str], shown_ids: frozenset[str]
) -> tuple[Together, ...]:
    """Group changes by the days between which they lie, the newest first."""
    groups: dict[str, list[ChangeMark]] = {}
    for each in marks:
        groups.setdefault(each.when, []).append(each)
    return tuple(_group(when, found, names, shown_ids) for when, found in groups.items())


def _group(when: str, found: Sequence[ChangeMark], names: Mapping[LineKey, str], shown_ids: frozenset[str]) -> Together:
    ordered = sorted(found, key=lambda each: (_kind_place(each.after.case_id)[0], -abs(each.ratio - 1.0)))
    by_case = {each.after.case_id: each for each in reversed(ordered)}
    named = [each for each in ordered if by_case[each.after.case_id] is each and each.after.case_id in shown_ids]
    commits = tuple(dict.fromkeys(line for each in ordered for line in each.commits))
    return Together(
        when=when,
        n_cases=len(by_case),
        places=tuple(sorted({names[line_key(each.after)] for each in found})),
        named=tuple(named[:_MOST_NAMED]),
        commits=commits[:_MOST_COMMITS],
        n_more_commits=max(0, len(commits) - _MOST_COMMITS),
    )


def _is_changed(marks: Sequence[ChangeMark]) -> bool:
    return any(not each.is_machine for each in marks)


def _kind_place(case_id: str) -> tuple[bool, str]:
    return not case_id.startswith("phase/"), case_id


def _summary(known: Sequence[TrendPoint], changes: Sequence[ChangeMark]) -> str:
    if not known:
        return "There is no measured run."
    runs, places = {each.run_id for each in known}, {line_key(each) for each in known}
    moments = [each.started_at for each in known]
    told = (
        f"{format_count(len(runs), 'run')} on {format_count(len(places), 'board' if has_boards(known) else 'device')}, "
        f"{min(moments):%Y-%m-%d} to {max(moments):%Y-%m-%d}."
    )
    if not changes:
        return f"{told} No change point is known."
    cases = {each.after.case_id for each in changes}
    return f"{told} {format_count(len(changes), 'change point')} in {format_count(len(cases), 'case')}."


def _notes(n_cases: int, lines: Mapping[str, Mapping[LineKey, Sequence[TrendPoint]]], most: int) -> Iterator[str]:
    yield "A change point is advice: no outcome and no exit code rests on it."
    longest = max((len(line) for of_case in lines.values() for line in of_case.values()), default=0)
    if longest > most:
        yield (
            f"Lines of more than {most} runs are thinned out: a point is one real run, the one with the median time of "
            f"up to {_n_together(longest, most)} runs of one fingerprint between two changes."
        )
    if n_cases > len(lines):
        left = format_count(n_cases - len(lines), "case")
        yield f"{left} of the {n_cases} not shown, to keep the page small: 'perfsuite history page PATTERN' chooses."


def _lines(points: Sequence[TrendPoint]) -> dict[LineKey, list[TrendPoint]]:
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
    return readable(f", commit {commit.sha[:10]}{branch}{', with changes' if commit.is_dirty else ''}")


def _thinned(line: Sequence[TrendPoint], changed_at: Sequence[datetime], most: int) -> list[TrendPoint]:
    """Return a line; of a long one, of every few runs the one with the median time.

    Runs of two fingerprints, or from both sides of a change, are never taken together.
    """
    n_together = _n_together(len(line), most)
    levels: dict[tuple[int, str | None], list[TrendPoint]] = {}
    for each in line:
        levels.setdefault((bisect_right(changed_at, each.started_at), each.fingerprint_digest), []).append(each)
    few = (level[start : start + n_together] for level in levels.values() for start in range(0, len(level), n_together))
    return sorted(map(_middle, few), key=lambda each: each.started_at)


def _n_together(n_runs: int, most: int) -> int:
    return -(-n_runs // most)


def _middle(runs: Sequence[TrendPoint]) -> TrendPoint:
    """Return the run with the median time, of two in the middle the faster one."""
    return sorted(runs, key=lambda each: each.measured_ns or 0)[(len(runs) - 1) // 2]


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """What the charts of a page share."""

    runs: _Runs
    names: Mapping[LineKey, str]
    #: Points of a line.
    most: int


def _case(
    case_id: str, by_key: Mapping[LineKey, Sequence[TrendPoint]], marks: Sequence[ChangeMark], about: _About
) -> tuple[Markup, dict[str, Any]]:
    """Draw a case; return its chart and what the script tells of its points."""
    lines = [(line, _thinned(line, _changed_at(key, marks), about.most)) for key, line in by_key.items()]
    names = [about.names[key] for key in by_key]
    scale = TimeScale.of(each.measured_ns or 0 for _, thin in lines for each in thin)
    values = [scale(each.measured_ns or 0) for _, thin in lines for each in thin]
    is_far = max(values) > _FAR * min(values) > 0.0
    title = scale.title("time of a run")
    y = log_axis(values, title) if is_far else level_axis(title, values)
    canvas = Canvas(x=about.runs.axis, y=y, height=_HEIGHT)
    looks = [_line_look(place) for place in range(len(lines))]
    curves = []
    for place, (look, (_, thin)) in enumerate(zip(looks, lines, strict=True)):
        curves += [(f"{look.colour} d{place % _N_DASHES} {look.shape}", part) for part in _parts(thin, scale)]
        if len(thin) <= _MOST_DOTS:
            curves.append((f"{look.colour} dots {look.shape}", [_place(each, scale) for each in thin]))
    n_runs = sum(len(line) for line, _ in lines)
    told = f"{readable(case_id)} over {format_count(n_runs, 'run')}: " + "; ".join(
        f"{name} {format_ns(line[0].measured_ns)} to {format_ns(line[-1].measured_ns)}"
        for name, (line, _) in zip(names, lines, strict=True)
    )
    seams = [part for each in marks for part in _seam(canvas, each, about.names[line_key(each.after)])]
    drawn = canvas.plot([*seams, canvas.curves(curves)], told, about.runs.dates)
    plain = {
        "unit": scale.unit,
        "lines": [
            [name, [value for each in thin for value in (about.runs.places[each.run_id], _place(each, scale)[1])]]
            for name, (_, thin) in zip(names, lines, strict=True)
        ],
    }
    return legend(zip(names, looks, strict=True)) + drawn, plain


def _line_look(place: int) -> Look:
    """Return the look of a line: its colour, and round or square dots by turns."""
    return Look(colour=look_of(place).colour, shape="square" if place % 2 else "circle")


def _changed_at(key: tuple[str, str], marks: Sequence[ChangeMark]) -> list[datetime]:
    """Return when the first runs after the changes of a line began, in the order of time."""
    return sorted(each.after.started_at for each in marks if line_key(each.after) == key)


def _parts(thin: Sequence[TrendPoint], scale: TimeScale) -> Iterator[list[tuple[float, float]]]:
    """Break a line where its fingerprint changes: times before and after are no series."""
    for _, part in groupby(thin, key=lambda each: each.fingerprint_digest):
        yield [_place(each, scale) for each in part]


def _place(point: TrendPoint, scale: TimeScale) -> tuple[float, float]:
    return _day(point.started_at), scale(point.measured_ns or 0)


def _seam(canvas: Canvas, change: ChangeMark, name: str) -> Iterator[Markup]:
    at = canvas.x.part(_day(change.after.started_at))
    yield rule(at, 0, at, canvas.height, "seam")
    told = f"{change.when}, {name}: {readable(change.text)}"
    yield canvas.mark(_day(change.after.started_at), canvas.y.high, _ANOTHER if change.is_machine else _CHANGED, told)
