"""Sentences and figures of the page, in the words of people."""

from __future__ import annotations

from urllib.parse import quote

from perfsuite.records.case import COUNTED
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.report.verdict_words import Tone, interval_words
from perfsuite.units import format_change, format_count, format_ns, format_ratio

#: What a link to a case begins with, after the ``#``.
ANCHOR = "case="

#: The kinds in the order of the page, one and several; others follow by name.
_KINDS = {
    "phase": ("phase", "Phases"),
    "operator": ("operator", "Operators"),
    "binding": ("case of the binding", "llama-cpp-python"),
    "percentile": ("percentile", "Percentiles of llama-cpp-python"),
    "engine_kernel": ("kernel of the engine", "Kernels of the engine"),
    "kernel": ("kernel", "Kernels"),
    "opencl": ("kernel of a test", "Kernels of tests"),
    "roofline": ("sweep", "Sweeps under the roofline"),
    "fidelity": ("fidelity", "Fidelity of the suite's own timings"),
    "overhead": ("overhead", "Overhead of the recorders"),
    "trace": ("trace", "Findings in traces"),
    "counted": ("count", "Counted work"),
    "shape-kept": ("kept shape", "Kept shapes"),
    "shape-hunt": ("hunt for shapes", "Hunts for shapes"),
}

_OUTCOMES = {
    Outcome.INVALID: ("Invalid", "measured in a way that does not count, or not at all"),
    Outcome.IMPOSSIBLE: ("Impossible", "faster than physics allows: the measurement is wrong"),
    Outcome.INCOMPARABLE: ("Incomparable", "the baseline was made on another setup"),
    Outcome.REGRESSED: ("Regressed", "slower than before, for sure and by more than the margin"),
    Outcome.SLOW: ("Slow", "beyond the limit that the forecast sets"),
    Outcome.SUSPECT: ("Suspect", "looks slower, not proven"),
    Outcome.INCONCLUSIVE: ("Inconclusive", "too noisy to tell"),
    Outcome.NEW: ("New", "nothing to compare with yet"),
    Outcome.IMPROVED: ("Improved", "faster than before, for sure and by more than the margin"),
    Outcome.PASS: ("Pass", "surely no slower than by what it states"),
}


def outcome_word(outcome: Outcome) -> str:
    """Return the word that stands for an outcome."""
    return _OUTCOMES[outcome][0]


def meaning(outcome: Outcome) -> str:
    """Return what an outcome means, in a few words."""
    return _OUTCOMES[outcome][1]


def kind_word(kind: str) -> str:
    """Return what one case of a kind is called; a third party's kind by its own name."""
    return _KINDS[kind][0] if kind in _KINDS else kind


def kind_title(kind: str) -> str:
    """Return the heading over all cases of a kind."""
    return _KINDS[kind][1] if kind in _KINDS else (kind.capitalize() or "Without a kind")


def kind_place(kind: str) -> tuple[int, str]:
    """Return where a kind comes in the order of the page."""
    order = list(_KINDS)
    return (order.index(kind) if kind in order else len(order)), kind


def short_name(case_id: str, workload: str) -> str:
    """Return the id without its first part and without the run's workload, which the page says once."""
    rest = case_id.partition("/")[2] or case_id
    return rest.removeprefix(f"{workload}/") or rest


def case_anchor(case_id: str) -> str:
    """Return the fragment of a link to a case, which is also the id of its place on the page."""
    return ANCHOR + quote(case_id, safe="/:@!$*+,;~-._", errors="replace")


_TONES = {Tone.BAD: "Failed", Tone.UNSURE: "Not everything was judged", Tone.GOOD: "Passed"}


def tone_word(tone: Tone) -> str:
    """Return what a run comes to, in a word or a few."""
    return _TONES[tone]


def capitalized(sentence: str) -> str:
    """Return the sentence with a capital at its beginning and all else as it is."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def interval_text(judgement: Judgement) -> str:
    """Return the bounds of the change as figures stand on the page; ``-`` where there are none."""
    return interval_words(judgement, told=format_ratio)


def basis_words(judgement: Judgement) -> str:
    """Say how sure the figure that matters is: its interval where there is one, and on how much it rests."""
    if judgement.outcome in (Outcome.SLOW, Outcome.IMPOSSIBLE):
        return spread_words(judgement)
    interval = interval_text(judgement)
    if judgement.n_pairs is not None:
        count = format_count(judgement.n_pairs, "pair")
    else:
        count = "exact" if judgement.kind == COUNTED else format_count(len(judgement.samples_ns), "replicate")
    return count if interval == "-" else f"{interval}, {count}"


def headline_change(judgement: Judgement) -> tuple[str, str]:
    """Return the figure that matters most of a case, and what it is of."""
    measured_ns = judgement.measured_ns or 0
    if judgement.outcome is Outcome.SLOW and judgement.limit_ns:
        return format_ratio(measured_ns / judgement.limit_ns), "over its limit"
    if judgement.outcome is Outcome.IMPOSSIBLE and judgement.floor_ns:
        return format_ratio(measured_ns / judgement.floor_ns), "below the floor"
    ratio = judgement.change_ratio
    more, less = ("more work", "less work") if judgement.kind == COUNTED else ("slower", "faster")
    return format_ratio(ratio), "" if ratio is None or ratio == 1.0 else more if ratio > 1.0 else less


def reason_beside(judgement: Judgement) -> str:
    """Return the reason without the change and the interval at its beginning, where these are beside it."""
    interval = interval_words(judgement)
    if interval == "-":
        return judgement.reason
    return judgement.reason.removeprefix(f"{format_change(judgement.change_ratio)} ({interval})").lstrip(",; ")


def spread_words(judgement: Judgement) -> str:
    """Say from how many replicates the measured time comes, and between which times they lie."""
    samples = judgement.samples_ns
    if not samples:
        return "-"
    count = format_count(len(samples), "replicate")
    return f"{count}, {format_ns(min(samples))} to {format_ns(max(samples))}"


def expected_words(judgement: Judgement) -> str:
    """Return the forecast with its interval."""
    if judgement.lower_ns is None or judgement.upper_ns is None:
        return format_ns(judgement.expected_ns)
    return f"{format_ns(judgement.expected_ns)} ({format_ns(judgement.lower_ns)} to {format_ns(judgement.upper_ns)})"


def old_word(judgement: Judgement) -> str:
    """Return what the time before is called: the other side of the pairs, or the baseline."""
    return "Old side" if judgement.baseline_samples_ns else "Baseline"


def when_words(started_at: str) -> str:
    """Return a time of ISO 8601 to the minute, in UTC; what is no such time, as it is."""
    moment = moment_of(started_at)
    return started_at if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def commit_words(run: RunFile) -> str:
    """Return the commit that the run stood on, short, with its branch and whether files differed from it."""
    commit = run.origin.commit
    if commit is None:
        return "not known"
    branch = f" on {commit.branch}" if commit.branch else ""
    return f"{commit.sha[:12]}{branch}{', with changes' if commit.is_dirty else ''}"


def duration_words(run: RunFile) -> str:
    """Return how long the run measured."""
    total_s = sum(run.durations_s.values())
    minutes, seconds = divmod(round(total_s), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{total_s:.1f} s"
