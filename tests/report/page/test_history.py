"""The page of a history."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from perfsuite.records.run_origin import BoardName, Commit
from perfsuite.records.trend_point import TrendPoint
from perfsuite.report.page.history import (
    CaseHistory,
    history_view,
    line_key,
    write_history_page,
)
from perfsuite.testing.run_files import HOSTILE_NAMES
from tests.history_points import DECODE, course, mark_at

from .svg_pieces import pieces, points, tips

PREFILL = "phase/smollm2-135m-q8_0/siso/prefill"


def the_case(*lines: list[TrendPoint]) -> CaseHistory:
    (case,) = history_view([point for line in lines for point in line], []).cases
    return case


def test_boards_are_lines_of_one_chart() -> None:
    """Each with its name, its newest time and one point a run, in the order of time; levels show in the picture."""
    fast, slow = list(course(board="fast")), list(course(board="slow", usual_ns=6_000_000))
    case = the_case(fast, slow)
    assert dict(case.newest) == {"rubikpi, board fast": "5.30 ms", "rubikpi, board slow": "6.36 ms"}
    lines = [points(each) for each in pieces(case.drawing, "path") if "dots" not in each.look]
    assert [len(line) for line in lines] == [30, 30]
    for line in lines:
        assert [x for x, _ in line] == sorted(x for x, _ in line)
        assert min(y for _, y in line[20:]) > max(y for _, y in line[:20])
    assert {each.text.strip() for each in pieces(case.drawing, "bdi")} == {"rubikpi, board fast", "rubikpi, board slow"}


def test_a_line_is_broken_where_the_machine_became_another() -> None:
    """Times of two fingerprints are no series, so that no line joins them."""
    night = list(course())
    other = [replace(each, fingerprint_digest="two") if place >= 15 else each for place, each in enumerate(night)]
    lines = [each for each in pieces(the_case(other).drawing, "path") if "dots" not in each.look]
    assert [len(points(each)) for each in lines] == [15, 15]


def test_a_change_is_marked_at_its_run() -> None:
    """Where the first run of the new level lies, with its words; a change of the machine has another mark."""
    night = list(course())
    change, machine = mark_at(night), mark_at(night, 10, is_machine=True, text="another fingerprint", commits=())
    view = history_view(night, [change, machine])
    (case,) = view.cases
    shapes = [each for each in pieces(case.drawing, "use") if each.attributes["x"].endswith("%")]
    found = {each.attributes["href"]: each.across("x") for each in shapes}
    runs = view.data["runs"]
    assert found["#shape-down"] == pytest.approx(runs[20][0] / 1000, abs=1e-3)
    assert found["#shape-square"] == pytest.approx(runs[10][0] / 1000, abs=1e-3)
    assert "+6.0 %" in case.drawing
    assert case.changes == (machine, change)
    (told,) = view.changes
    assert (told.n_cases, told.commits, told.places) == (1, ("abc1234 a change",), ("rubikpi",))
    assert "1 change point in 1 case" in view.summary


def test_changes_between_the_same_days_are_told_together() -> None:
    """The newest first, phases first, each case once; commits are listed once."""
    decode, prefill = list(course()), list(course(PREFILL))
    operator = list(course("operator/smollm2-135m-q8_0/siso/decode/ffn_up"))
    marks = [mark_at(operator, ratio=1.5), mark_at(decode), mark_at(prefill, ratio=0.9), mark_at(decode, 5)]
    view = history_view([*operator, *decode, *prefill], marks)
    newest, older = view.changes
    assert (newest.when, newest.n_cases) == ("2026-01-20 to 2026-01-21", 3)
    assert [each.after.case_id for each in newest.named] == [PREFILL, DECODE, operator[0].case_id]
    assert newest.commits == ("abc1234 a change",)
    assert older.when < newest.when
    assert view.n_more_changes == 0
    days = [mark_at(decode, night) for night in range(5, 15)]
    assert history_view(decode, days).n_more_changes == 5


def test_the_script_has_what_the_line_shows() -> None:
    """Each point's run and time, which say the same as the picture; a run has its day and commit."""
    night = list(course())
    view = history_view(night, [])
    (chart,) = view.data["charts"]
    ((name, values),) = chart["lines"]
    assert (name, chart["unit"]) == ("rubikpi", "ms")
    assert values[1::2] == [float(f"{(each.measured_ns or 0) / 1e6:.5g}") for each in night]
    across = [view.data["runs"][place][0] / 1000 for place in values[::2]]
    assert across == [x for x, _ in points(pieces(view.cases[0].drawing, "path")[0])]
    assert view.data["runs"][0][1:] == [0, "2026-01-01 02:00", f", commit {'0' * 10} on main"]
    assert [moment for _, moment, _, _ in view.data["runs"]] == list(range(30))
    beside = [
        replace(each, started_at=each.started_at + timedelta(seconds=place % 2)) for place, each in enumerate(night)
    ]
    both = history_view([*beside, *course(board="shelf")], [])
    assert [moment for _, moment, _, _ in both.data["runs"]] == sorted([*range(45), *range(0, 45, 3)])


def test_a_thinned_line_has_only_times_of_runs() -> None:
    """Each point has the time, day and commit of one run, and no point lies between two levels."""
    by_case = {
        f"operator/m/s/decode/{number:03}": list(course(f"operator/m/s/decode/{number:03}", n_nights=90))
        for number in range(200)
    }
    slow, other = 21, 50
    for nights in by_case.values():
        for place, night in enumerate(nights):
            nights[place] = replace(night, commit=Commit(sha=f"{place:010x}{'0' * 30}"))
        for place in range(slow, 90):
            nights[place] = replace(nights[place], measured_ns=9_000_000 + place * 1_000)
        for place in range(other, 90):
            nights[place] = replace(nights[place], fingerprint_digest="two")
    marks = [mark_at(nights, slow) for nights in by_case.values()]
    view = history_view([point for nights in by_case.values() for point in nights], marks)
    assert any("thinned out" in note for note in view.notes)
    for case, chart in zip(view.cases, view.data["charts"], strict=True):
        nights = by_case[case.case_id]
        ((_, values),) = chart["lines"]
        told = [
            ("".join(view.data["runs"][run][2:]), time) for run, time in zip(values[::2], values[1::2], strict=True)
        ]
        assert len(told) < 90
        real = {
            f"{each.started_at:%Y-%m-%d %H:%M}, commit {place:010x}": (each.measured_ns or 0) / 1e6
            for place, each in enumerate(nights)
        }
        assert told == [(words, pytest.approx(real[words], rel=1e-4)) for words, _ in told]
        assert [time for _, time in told if 5.3 < time < 9.0] == []
        levels = [len(range(0, n_nights, 2)) for n_nights in (slow, other - slow, 90 - other)]
        assert len(told) == sum(levels)
        lines = [each for each in pieces(case.drawing, "path") if "dots" not in each.look]
        assert [len(points(each)) for each in lines] == [levels[0] + levels[1], levels[2]]


def test_the_page_of_a_long_history_is_bounded(tmp_path: Path) -> None:
    """A year of nights of 50 cases on two boards takes less than 1 MB: no more points are drawn than can be seen."""
    made = [
        point
        for number in range(50)
        for board in ("one", "two")
        for point in course(f"operator/m/s/decode/{number:03}", n_nights=365, board=board)
    ]
    assert write_history_page(made, [], tmp_path / "history.html").stat().st_size < 1_000_000


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_do_nothing(tmp_path: Path, name: str) -> None:
    """Of cases, boards, branches and commits: they make no element, and the data for the script can be read."""
    night = [
        replace(
            each, device=name, case_id=f"tokenizer/{name}", commit=each.commit and replace(each.commit, branch=name)
        )
        for each in course(board=name)
    ]
    marks = [mark_at(night, commits=(f"abc {name}",), text=name, remarks=(name,))]
    text = write_history_page(night, marks, tmp_path / "history.html").read_text("utf-8")
    found = pieces(text)
    assert not [each.tag for each in found if each.tag in {"img", "iframe", "object", "embed"}]
    assert not [name for each in found for name in each.attributes if name.startswith("on")]
    (data,) = (each.text for each in found if each.attributes.get("id") == "courses")
    assert json.loads(data)["charts"]
    assert [each.attributes.get("type") for each in found if each.tag == "script"] == [None, "application/json", None]


def test_a_history_without_a_time_has_a_page(tmp_path: Path) -> None:
    bare = [replace(each, measured_ns=None) for each in course()]
    view = history_view(bare, [])
    assert (view.summary, view.cases) == ("There is no measured run.", ())
    assert "no measured run" in write_history_page(bare, [], tmp_path / "a.html").read_text("utf-8")


def test_boards_of_one_host_name_are_told_apart() -> None:
    """By their identities: as lines, as newest times, at changes, and when they are counted."""
    one, other = (
        [board_of(each, identity) for each in course(board=identity)] for identity in ("a1b2" * 4, "c3d4" * 4)
    )
    third = list(course(board="shelf"))
    names = ["rubikpi, board a1b2a1b2a1b2a1b2 (rock)", "rubikpi, board c3d4c3d4c3d4c3d4 (rock)", "rubikpi, board shelf"]
    view = history_view([*one, *other, *third], [mark_at(one), mark_at(other)])
    (case,) = view.cases
    assert [name for name, _ in case.newest] == names
    assert [name for name, _ in view.data["charts"][0]["lines"]] == names
    assert [view.place(each.after) for each in case.changes] == names[:2]
    assert view.changes[0].places == tuple(names[:2])
    assert "90 runs on 3 boards" in view.summary
    assert {line_key(each) for each in (*one, *other, *third)} == view.names.keys()


def board_of(point: TrendPoint, identity: str) -> TrendPoint:
    """A run of a board that shares its host name."""
    return replace(point, board=BoardName(identity=identity, hostname="rock", is_linked=True))


def test_control_characters_of_a_change_are_not_in_its_tip() -> None:
    night = list(course())
    (case,) = history_view(night, [mark_at(night, text="another\x1b[31m board\u202e")]).cases
    (tip,) = tips(case.drawing)
    assert r"another\x1b[31m board\u202e" in tip
    assert not {"\x1b", "\u202e"} & set(tip)
