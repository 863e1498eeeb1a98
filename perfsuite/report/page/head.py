"""The first screen: the verdict, what changed by how much, who caused it, against what, how sure, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.charts.svg import block, picture
from perfsuite.report.next_steps import MAX_STEPS, EndedRun, Step, steps_after
from perfsuite.report.page.charts.change import axis_drawing, bounds_of, change_axis, change_drawing
from perfsuite.report.page.charts.figure import case_name
from perfsuite.report.page.findings import Branch, Finding
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.words import direction_words
from perfsuite.report.reproduce import command_again, option_value
from perfsuite.report.run_writer import token_rate
from perfsuite.report.verdict_words import Tone, are_counted, change_words, looks_faster, verdict_parts, verdict_tone
from perfsuite.report.words import capitalized, commit_title, commit_words, engine_words, when_words
from perfsuite.units import format_count, format_limit, format_ns, format_signed_ns, format_tokens_per_s, to_percent

#: Lines of the first screen, phases that it says the cause of, and operators of each.
MAX_LINES, _MOST_BLAMED, _MOST_PARTS = 4, 2, 3
#: A phase that takes less of the longest one is shown where it fails alone.
_LEAST_SHARE = 0.01

_TONES = {Tone.BAD: "Failed", Tone.UNSURE: "Not everything was judged", Tone.GOOD: "Passed"}


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
    drawing: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Which operators carry the change of a phase, each with its share, the time lost and a bar."""

    sentence: str
    parts: tuple[tuple[Branch, str, str, Markup], ...]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the reader sees first."""

    title: str
    #: ``bad``, ``unsure`` or ``good``.
    tone: str
    tone_word: str
    #: The verdict in two sentences: what matters most, and all else that came out; the latter may be empty.
    verdict: str
    further: str
    #: What must be known beside the verdict, each a sentence.
    remarks: tuple[str, ...]
    #: What having the device came to, each in a few words.
    notes: tuple[str, ...]
    #: What must be acted upon first.
    counts: Mapping[Outcome, int]
    n_cases: int
    #: Whether any of them was measured and compared.
    is_judged: bool
    facts: Mapping[str, str]
    answer: Answer


def page_head(page_run: PageRun, findings: Sequence[Finding] = ()) -> Head:
    """Return the head of the page about a run, of which the findings are the cases that changed."""
    run, answer = page_run.run, answer_of(page_run, findings)
    tone = verdict_tone(run)
    counts = Counter(judgement.outcome for judgement in run.judgements)
    verdict, *others = verdict_parts(run)
    return Head(
        title=f"{_TONES[tone]}: {run.device}, {run.workload}, {when_words(run.started_at)}",
        tone=tone.value,
        tone_word=_TONES[tone],
        verdict=f"{capitalized(verdict)}.",
        further=f"{capitalized('; '.join(others))}." if others else "",
        remarks=tuple(_remarks(run)),
        notes=tuple(dict.fromkeys(run.device_notes)),
        counts={outcome: counts[outcome] for outcome in ORDER_OF_WEIGHT if counts[outcome]},
        n_cases=len(run.judgements),
        is_judged=any(each.outcome.decides for each in run.judgements),
        facts={name: value for name, value in _facts(run, answer) if value},
        answer=answer,
    )


def _remarks(run: RunFile) -> Iterator[str]:
    if run.is_injected:
        yield "This run was slowed down on purpose (--perf-inject): it tests the verdict and is no reference."
    if run.is_interrupted:
        yield "This run was broken off: it holds what was measured until then."
    if shift := run.attribution.uniform_shift:
        yield (
            f"Everything {change_words(shift.ratio)} ({shift.n_cases} cases moved alike): the cause is in no single "
            "operator. Look at frequency, memory, threads and build before anything else."
        )


def _facts(run: RunFile, answer: Answer) -> Iterator[tuple[str, str]]:
    yield "Compared with", against_words(run)
    yield "How sure", sure_words(answer.lines)
    yield "Engine", engine_words(run.subjects)
    soc = next(filter(None, (fields.get("soc", "") for fields in run.fingerprints.values())), "")
    yield "Device", f"{run.device} ({soc})" if soc else run.device
    if run.origin.board:
        yield "Board" if run.origin.board.is_linked else "Machine", run.origin.board.text
    yield "Workload", run.workload
    total_s = sum(run.durations_s.values())
    minutes, seconds = divmod(round(total_s), 60)
    spent = f"{minutes} min {seconds} s" if minutes else f"{total_s:.1f} s"
    yield "Measured", f"{when_words(run.started_at)}, {spent}"
    yield commit_title(run.origin), commit_words(run)


def against_words(run: RunFile) -> str:
    """Say what the times were compared with, and on which machine that was measured."""
    if run.against:
        return f"{run.against}: old and new by turns, on this machine, in this run"
    outcomes = {each.outcome for each in run.judgements}
    if any(each.change_ratio is not None for each in run.judgements):
        return f"the stored baseline of {run.device}, made on an equal setup"
    if Outcome.INCOMPARABLE in outcomes:
        return "nothing: the stored baseline was made on another setup"
    return "nothing yet: no baseline is stored" if Outcome.NEW in outcomes else ""


def sure_words(lines: Sequence[ChangeLine]) -> str:
    """Say on how much the changes of these lines rest, and what they can resolve."""
    compared = [each.judgement for each in lines if each.drawing is not None]
    if not compared:
        return ""
    if are_counted(compared):
        return "counts are exact"
    n_pairs = [each.n_pairs for each in compared if each.n_pairs is not None]
    counts, noun = n_pairs or [len(each.samples_ns) for each in compared], "pair" if n_pairs else "replicate"
    least, most = min(counts), max(counts)
    words = format_count(most, noun) if least == most else f"{least} to {format_count(most, noun)}"
    resolved = [ratio for each in compared if (ratio := _resolved_ratio(each)) is not None]
    return f"{words}; a slowdown of {format_limit(max(resolved))} would be seen" if resolved else words


def _resolved_ratio(judgement: Judgement) -> float | None:
    """Return the slowdown that would have been seen, over the old time."""
    if judgement.smallest_effect_ratio is not None:
        return judgement.smallest_effect_ratio - 1.0
    return judgement.resolution_ratio


def answer_of(page_run: PageRun, findings: Sequence[Finding]) -> Answer:
    """Return the answer of a run, of which the findings are the cases that changed."""
    run = page_run.run
    shown = _shown(run)
    places = {each.case_id: place for place, each in enumerate(run.judgements)}
    blamed = sorted((each for each in findings if each.branches), key=lambda each: places[each.judgement.case_id])
    axis = change_axis(shown)
    return Answer(
        lines=tuple(
            ChangeLine(
                judgement=each,
                name=case_name(each),
                speed=_speed_words(each),
                word=_change_word(each),
                drawing=change_drawing(each, axis) if axis and each.change_ratio is not None else None,
            )
            for each in shown
        ),
        is_counted=are_counted(shown),
        axis=axis_drawing(axis) if axis else None,
        reading="" if are_counted(shown) else _reading(shown),
        blames=tuple(map(_blame, blamed[:_MOST_BLAMED])),
        steps=tuple(islice(_steps(page_run), MAX_STEPS)),
        hint=_hint(run),
    )


def _shown(run: RunFile) -> list[Judgement]:
    """Return the phases that matter, in the order of the run; without phases, the other cases that changed most."""
    phases = [each for each in run.judgements if each.kind == "phase" and each.measured_ns]
    least_ns = max((each.measured_ns or 0 for each in phases), default=0) * _LEAST_SHARE
    long = [each for each in phases if each.outcome.alarms or (each.measured_ns or 0) >= least_ns]
    chosen = sorted(long or [each for each in run.judgements if each.change_ratio is not None], key=_weight)[:MAX_LINES]
    return [each for each in run.judgements if each in chosen]


def _weight(judgement: Judgement) -> tuple[bool, int, float]:
    """Order by what fails or looks slower, then by the time lost, and what has no time by its change."""
    ratio = judgement.change_ratio
    return not judgement.outcome.alarms, -abs(judgement.lost_ns or 0), -abs(1.0 if ratio is None else ratio - 1.0)


def _reading(shown: Sequence[Judgement]) -> str:
    """Say what the marks mean that are there."""
    changes = [each for each in shown if each.change_ratio is not None]
    meanings = {
        "Bar: interval of the change.": any(map(bounds_of, changes)),
        "Ring: a change without an interval.": not all(map(bounds_of, changes)),
        "Band: margin.": any(each.margin_ratio is not None for each in changes),
    }
    return " ".join(words for words, is_there in meanings.items() if is_there)


def _change_word(judgement: Judgement) -> str:
    if looks_faster(judgement):
        return "looks faster"
    more, less = direction_words(judgement)
    words = {
        Outcome.PASS: "as before",
        Outcome.SUSPECT: "looks slower",
        Outcome.REGRESSED: more,
        Outcome.IMPROVED: less,
        Outcome.INCONCLUSIVE: "undecided",
    }
    return words.get(judgement.outcome, judgement.outcome.value)


def _speed_words(judgement: Judgement) -> str:
    times = judgement.baseline_ns, judgement.measured_ns
    rates = [token_rate(judgement, time_ns) for time_ns in times]
    if rates[1] is not None:
        return f"{' → '.join(format_tokens_per_s(rate) for rate in rates if rate is not None)} tokens/s"
    return " → ".join(format_ns(time_ns) for time_ns in times if time_ns)


def _blame(finding: Finding) -> Blame:
    *parts, rest = finding.branches
    lost_ns = sum(each.lost_ns for each in finding.branches)
    sentence = f"{case_name(finding.judgement)} {'lost' if lost_ns > 0 else 'won'} {format_ns(abs(lost_ns))}"
    if not any(each.judgement and each.judgement.outcome.decides for each in parts):
        sentence += "; no operator changed for sure by itself"
    left = parts[_MOST_PARTS:]
    shares = [each.share_ratio for each in left if each.share_ratio is not None]
    together = Branch(
        role=f"{len(left)} more",
        lost_ns=sum(each.lost_ns for each in left),
        share_ratio=sum(shares) if shares else None,
        judgement=None,
    )
    shown = [*parts[:_MOST_PARTS], *([together] if left else []), rest]
    return Blame(sentence=sentence, parts=tuple(map(_part, shown)))


def _part(branch: Branch) -> tuple[Branch, str, str, Markup]:
    share = branch.share_ratio
    bar = [] if share is None else [block(0.0, min(1.0, max(0.0, share)), 5, 8, "k1" if branch.judgement else "k5")]
    words = "-" if share is None else f"{to_percent(share):.0f} %"
    return branch, words, format_signed_ns(branch.lost_ns), picture(bar, 18, "", "bar")


def _steps(page_run: PageRun) -> Iterator[Step]:
    """Return what the terminal says as well; after a first recording, the run that compares with it."""
    run, is_known = page_run.run, bool(page_run.run.origin.arguments)
    ended = EndedRun(
        judgements=run.judgements,
        run_path=str(page_run.path.parent),
        report_path=None,
        origin=run.origin,
        attribution=run.attribution,
        is_recording=option_value(run.origin, "--baseline") == "record",
        is_interrupted=run.is_interrupted,
    )
    for why, command in steps_after(ended):
        yield capitalized(why), command if is_known else ""
    if ended.is_recording and all(each.outcome is Outcome.NEW for each in run.judgements) and is_known:
        yield (
            "These times are the reference now. After your change, run this to compare with them",
            command_again(run.origin, (), {"--baseline": None}),
        )


def _hint(run: RunFile) -> str:
    """Say what helps where noise kept cases from being judged."""
    outcomes = {each.outcome for each in run.judgements}
    is_noisy = not outcomes.isdisjoint((Outcome.SUSPECT, Outcome.INCONCLUSIVE, Outcome.INVALID))
    is_only_noisy = is_noisy and not any(each.fails for each in outcomes)
    return "Close other programs, plug the device in and let it cool first." if is_only_noisy else ""
