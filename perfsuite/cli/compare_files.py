"""``perfsuite compare`` of two files: what all tests share, then a row a test with what tells it apart."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, give
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO
from perfsuite.records.benchmark_files import read_benchmark
from perfsuite.records.outcome import LEAST_PAIRS, NOTHING_JUDGED_EXIT, Outcome, is_nothing_judged
from perfsuite.units import format_count, format_ns, format_ratio
from perfsuite.verdict.judge_files import FileChange, FileChanges, judge_files
from perfsuite.verdict.pairs import PairedChange

#: So wide are the lines above and below the table.
_WIDTH = 100
_MOST_LISTED = 20
_TODO = f"run OLD, NEW, OLD, NEW ... and append to the files; {LEAST_PAIRS} runs of each at least"


def compare_files(options: argparse.Namespace) -> int:
    """Compare what others measured."""
    found = judge_files(
        read_benchmark(Path(options.old)), read_benchmark(Path(options.new)), margin_ratio=DEFAULT_MARGIN_RATIO
    )
    outcomes, code = [each.outcome for each in found.changes], 0
    if Outcome.REGRESSED in outcomes or Outcome.INVALID in outcomes:
        code = 1
    elif not outcomes or is_nothing_judged(outcomes):
        code = NOTHING_JUDGED_EXIT
    return give(Answer(parts=lambda: _parts(found, options), plain=_plain(found)), options, code)


def _parts(found: FileChanges, options: argparse.Namespace) -> Iterator[Part]:
    shared, of_name = _shared(found.changes)
    names = {id(each): _name(each.name, each.alike, {**shared, **of_name.get(each.name, {})}) for each in found.changes}
    for each in found.changes:
        if each.outcome is Outcome.INVALID:
            yield _line(f"invalid: {names[id(each)]}: {each.reason}; it has no speed")
    if shared:
        yield _line(_settings(shared))
    yield from (_line(f"{name}: {_settings(alike)}") for name, alike in of_name.items() if alike)
    yield from _reasons(found.changes, names, Outcome.INCOMPARABLE)
    timed = [(each, each.change) for each in found.changes if each.change]
    if timed:
        yield Sheet(
            ("verdict", ">change", ">interval", ">old", ">new", "test"),
            [
                (
                    *(each.outcome.value, format_ratio(change.estimate_ratio), _interval(change)),
                    *(format_ns(each.old_ns), format_ns(each.new_ns), names[id(each)]),
                )
                for each, change in timed
            ],
        )
    yield from _reasons(found.changes, names, Outcome.INCONCLUSIVE)
    counts = Counter(each.outcome.value for each in found.changes)
    told = ", ".join(f"{counts[each.value]} {each.value}" for each in Outcome if counts[each.value]) or "none in both"
    yield f"{format_count(len(found.changes), 'test')}, margin {DEFAULT_MARGIN_RATIO * 100:g} %: {told}"
    for path, alone in ((options.old, found.old_alone), (options.new, found.new_alone)):
        if alone:
            tests = [_name(each.name, each.identity, shared) for each in alone]
            yield _line(f"in {path} alone: {_listed(tests)}")
    if all(each.outcome is Outcome.INCONCLUSIVE for each in found.changes) and found.changes:
        yield f"nothing is decided: {_TODO}"


def _shared(changes: Sequence[FileChange]) -> tuple[Mapping[str, str], Mapping[str, Mapping[str, str]]]:
    """Return what all tests have alike, and by name what several of one name have alike beside that."""
    shared = _common(each.alike for each in changes)
    counts = Counter(each.name for each in changes)
    several = [name for name, count in counts.items() if count > 1]
    return shared, {
        name: {
            key: value
            for key, value in _common(each.alike for each in changes if each.name == name).items()
            if key not in shared
        }
        for name in several
    }


def _common(all_settings: Iterable[Mapping[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] | None = None
    for each in all_settings:
        found = {name: value for name, value in (each if found is None else found).items() if each.get(name) == value}
    return found or {}


def _name(name: str, settings: Mapping[str, str], shared: Mapping[str, str]) -> str:
    own = {key: value for key, value in settings.items() if shared.get(key) != value}
    return f"{name} {_settings(own)}" if any(own.values()) else name


def _settings(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items() if value)


def _reasons(changes: Sequence[FileChange], names: Mapping[int, str], outcome: Outcome) -> Iterator[str]:
    """Yield why tests are not decided, each reason once, with the tests where not all share it."""
    why: dict[str, list[str]] = {}
    for each in changes:
        if each.outcome is outcome:
            why.setdefault(each.reason, []).append(names[id(each)])
    for reason, tests in why.items():
        of = "" if len(tests) == len(changes) else f" ({_listed(tests)})"
        yield _line(f"{outcome.value}: {reason}{of}")


def _listed(names: Sequence[str]) -> str:
    more = f"; and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return "; ".join(names[:_MOST_LISTED]) + more


def _interval(change: PairedChange) -> str | None:
    """Return both bounds in per cent, or as factors; None where they are not known."""
    if change.n_pairs < LEAST_PAIRS or not math.isfinite(change.error):
        return None
    lower, upper = format_ratio(change.lower_ratio), format_ratio(change.upper_ratio)
    return f"{lower.removesuffix(' %') if upper.endswith('%') else lower} to {upper}"


def _line(text: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _plain(found: FileChanges) -> dict[str, Any]:
    return {
        "margin_ratio": DEFAULT_MARGIN_RATIO,
        "tests": [
            {
                **fields_of(each, "name", "alike", "outcome", "old_ns", "new_ns", "n_pairs", "reason"),
                "change_ratio": each.change and each.change.estimate_ratio,
                "lower_ratio": each.change and each.change.lower_ratio,
                "upper_ratio": each.change and each.change.upper_ratio,
            }
            for each in found.changes
        ],
        **{
            key: [{"name": each.name, "settings": each.identity} for each in alone]
            for key, alone in (("old_alone", found.old_alone), ("new_alone", found.new_alone))
        },
    }
