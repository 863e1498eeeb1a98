"""The answer of the first screen: what changed by how much, who caused it, against what, how sure, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from perfsuite.records.case import COUNTED
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.svg import block, picture
from perfsuite.report.next_steps import MAX_STEPS, EndedRun, Step, steps_after
from perfsuite.report.page.charts.change import Change, axis_drawing, change_axis
from perfsuite.report.page.charts.names import case_name, readable
from perfsuite.report.page.findings import Branch, Finding
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.words import capitalized
from perfsuite.report.reproduce import command_again, option_value
from perfsuite.report.run_writer import token_rate
from perfsuite.report.verdict_words import are_counted, looks_faster
from perfsuite.units import format_count, format_limit, format_ns, format_signed_ns, format_tokens_per_s, to_percent

#: Lines of the first screen, phases that it says the cause of, and operators of each.
MAX_LINES, _MOST_BLAMED, _MOST_PARTS = 4, 2, 3
#: A phase that takes less of the longest one is shown where it fails alone.
_LEAST_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """How much one case changed."""

    judgement: Judgement
    name: str
    #: Tokens a second or times, old and new.
    speed: str
    #: Slower, faster, more work, less work, as before or undecided.
    word: str
    #: None where there was nothing to compare with.
    change: Change | None
    drawing: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What an operator has of a phase's change."""

    branch: Branch
    share: str
    lost: str
    drawing: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which operators carry the change of a phase."""

    told: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the reader came for."""

    lines: tuple[ChangeLine, ...]
    #: Whether these lines have counts, and no times.
    is_counted: bool
    #: Numbers of the scale of the lines; None where no line has a change.
    axis: Markup | None
    #: How to read the lines; empty where none has a change.
    reading: str
    blames: tuple[Blame, ...]
    #: What to do next, each with its command, which may be empty; and what helps with all of them.
    steps: tuple[Step, ...]
    hint: str


def answer_of(page_run: PageRun, findings: Sequence[Finding]) -> Answer:
    """Return the answer of a run, of which the findings are the cases that changed."""
    run = page_run.run
    shown = _shown(run)
    places = {each.case_id: place for place, each in enumerate(run.judgements)}
    blamed = sorted((each for each in findings if each.branches), key=lambda each: places[each.judgement.case_id])
    changes = [change for each in shown if (change := Change.of(each))]
    axis = change_axis(changes) if changes else None
    return Answer(
        lines=tuple(
            ChangeLine(
                judgement=each,
                name=case_name(each),
                speed=_speed_words(each),
                word=_change_word(each),
                change=(change := Change.of(each)),
                drawing=change.drawing(axis) if change and axis else Markup(""),
            )
            for each in shown
        ),
        is_counted=are_counted(shown),
        axis=axis_drawing(axis) if axis else None,
        reading="" if are_counted(shown) else _reading(changes),
        blames=tuple(map(_blame, blamed[:_MOST_BLAMED])),
        steps=tuple(islice(_steps(page_run), MAX_STEPS)),
        hint=_hint(run),
    )


def _shown(run: RunFile) -> list[Judgement]:
    """Return the phases that matter, in the order of the run; without phases, the other cases that changed most."""
    phases = [each for each in run.judgements if each.kind == "phase" and each.measured_ns]
    longest_ns = max((each.measured_ns or 0 for each in phases), default=0)
    long = [each for each in phases if each.outcome.alarms or (each.measured_ns or 0) >= longest_ns * _LEAST_SHARE]
    found = long or [each for each in run.judgements if each.change_ratio is not None]
    chosen = sorted(found, key=_weight)[:MAX_LINES]
    return [each for each in run.judgements if each in chosen]


def _weight(judgement: Judgement) -> tuple[bool, int, float]:
    """Order by what fails or looks slower, then by the time lost, and what has no time by its change."""
    return (
        not judgement.outcome.alarms,
        -abs(judgement.lost_ns or 0),
        -abs(1.0 if judgement.change_ratio is None else judgement.change_ratio - 1.0),
    )


def _reading(changes: Sequence[Change]) -> str:
    """Say what the marks mean that are there."""
    told = {
        "Bar: interval of the change.": any(each.bounds for each in changes),
        "Ring: a change without an interval.": any(each.bounds is None for each in changes),
        "Band: margin.": any(each.margin_ratio is not None for each in changes),
    }
    return " ".join(words for words, is_there in told.items() if is_there)


def _change_word(judgement: Judgement) -> str:
    if looks_faster(judgement):
        return "looks faster"
    if judgement.outcome is Outcome.PASS:
        return "as before"
    if judgement.outcome is Outcome.SUSPECT:
        return "looks slower"
    if judgement.outcome in (Outcome.REGRESSED, Outcome.IMPROVED):
        more, less = ("more work", "less work") if judgement.kind == COUNTED else ("slower", "faster")
        return more if judgement.outcome is Outcome.REGRESSED else less
    return "undecided" if judgement.outcome is Outcome.INCONCLUSIVE else judgement.outcome.value


def _speed_words(judgement: Judgement) -> str:
    new, old = judgement.measured_ns, judgement.baseline_ns
    rates = [token_rate(judgement, time_ns) for time_ns in (old, new)]
    if rates[1] is not None:
        told = [format_tokens_per_s(rate) for rate in rates if rate is not None]
        return f"{' → '.join(told)} tokens/s"
    return " → ".join(format_ns(time_ns) for time_ns in (old, new) if time_ns)


def _blame(finding: Finding) -> Blame:
    *parts, rest = finding.branches
    left = parts[_MOST_PARTS:]
    lost_ns = sum(each.lost_ns for each in finding.branches)
    told = f"{case_name(finding.judgement)} {'lost' if lost_ns > 0 else 'won'} {format_ns(abs(lost_ns))}"
    if not any(each.judgement and each.judgement.outcome.decides for each in parts):
        told += "; no operator changed for sure by itself"
    shown = [*parts[:_MOST_PARTS], *([_together(left)] if left else []), rest]
    return Blame(told=told, parts=tuple(map(_part, shown)))


def _together(branches: Sequence[Branch]) -> Branch:
    shares = [each.share_ratio for each in branches if each.share_ratio is not None]
    return Branch(
        role=f"{len(branches)} more",
        lost_ns=sum(each.lost_ns for each in branches),
        share_ratio=sum(shares) if shares else None,
        judgement=None,
    )


def _part(branch: Branch) -> Part:
    share = branch.share_ratio
    bar = [] if share is None else [block(0.0, min(1.0, max(0.0, share)), 5, 8, "k1" if branch.judgement else "k5")]
    return Part(
        branch=branch,
        share="-" if share is None else f"{to_percent(share):.0f} %",
        lost=format_signed_ns(branch.lost_ns),
        drawing=picture(bar, 18, "", "bar"),
    )


def _steps(page_run: PageRun) -> Iterator[Step]:
    """Return what the terminal says as well; after a first recording, the run that compares with it."""
    run, is_recording = page_run.run, option_value(page_run.run.origin, "--baseline") == "record"
    ended = EndedRun(
        judgements=run.judgements,
        run_path=str(page_run.path.parent),
        report_path=None,
        origin=run.origin,
        attribution=run.attribution,
        is_recording=is_recording,
        is_interrupted=run.is_interrupted,
    )
    is_known = bool(run.origin.arguments)
    for why, command in steps_after(ended):
        yield capitalized(why), command if is_known else ""
    if is_recording and all(each.outcome is Outcome.NEW for each in run.judgements) and is_known:
        yield (
            "These times are the reference now. After your change, run this to compare with them",
            command_again(run.origin, (), {"--baseline": None}),
        )


def _hint(run: RunFile) -> str:
    """Say what helps where noise kept cases from being judged."""
    noisy = any(each.outcome in (Outcome.SUSPECT, Outcome.INCONCLUSIVE, Outcome.INVALID) for each in run.judgements)
    if not noisy or any(each.outcome.fails for each in run.judgements):
        return ""
    return "Close other programs, plug the device in and let it cool first."


def against_words(run: RunFile) -> str:
    """Say what the times were compared with, and on which machine that was measured."""
    if run.against:
        return f"{run.against}: old and new by turns, on this machine, in this run"
    outcomes = {each.outcome for each in run.judgements}
    if any(each.change_ratio is not None for each in run.judgements):
        return f"the stored baseline of {readable(run.device)}, made on an equal setup"
    if Outcome.INCOMPARABLE in outcomes:
        return "nothing: the stored baseline was made on another setup"
    return "nothing yet: no baseline is stored" if Outcome.NEW in outcomes else ""


def sure_words(lines: Sequence[ChangeLine]) -> str:
    """Say on how much the changes of these lines rest, and what they can resolve."""
    compared = [each.judgement for each in lines if each.change is not None]
    if not compared:
        return ""
    if are_counted(compared):
        return "counts are exact"
    n_pairs = [each.n_pairs for each in compared if each.n_pairs is not None]
    counts = n_pairs or [len(each.samples_ns) for each in compared]
    noun = "pair" if n_pairs else "replicate"
    least, most = min(counts), max(counts)
    told = format_count(most, noun) if least == most else f"{least} to {format_count(most, noun)}"
    seen = [ratio for each in compared if (ratio := _seen_ratio(each)) is not None]
    if seen:
        told += f"; a slowdown of {format_limit(max(seen))} would be seen"
    return told


def _seen_ratio(judgement: Judgement) -> float | None:
    """Return the slowdown that would have been seen, over the old time."""
    if judgement.smallest_effect_ratio is not None:
        return judgement.smallest_effect_ratio - 1.0
    return judgement.resolution_ratio
