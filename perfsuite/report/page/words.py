"""Sentences and figures of a case on the page, in the words of people."""

from __future__ import annotations

from urllib.parse import quote

from perfsuite.records.case import COUNTED
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.report.verdict_words import interval_words
from perfsuite.units import format_change, format_count, format_ns, format_ratio

#: What a link to a case begins with, after the ``#``.
ANCHOR = "case="


def short_name(case_id: str, workload: str) -> str:
    """Return the id without its first part and without the run's workload, which the page says once."""
    rest = case_id.partition("/")[2] or case_id
    return rest.removeprefix(f"{workload}/") or rest


def case_anchor(case_id: str) -> str:
    """Return the fragment of a link to a case, which is also the id of its place on the page."""
    return ANCHOR + quote(case_id, safe="/:@!$*+,;~-._", errors="replace")


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
    ratio, (more, less) = judgement.change_ratio, direction_words(judgement)
    return format_ratio(ratio), "" if ratio is None or ratio == 1.0 else more if ratio > 1.0 else less


def direction_words(judgement: Judgement) -> tuple[str, str]:
    """Return what a larger and a smaller figure of a case are called."""
    return ("more work", "less work") if judgement.kind == COUNTED else ("slower", "faster")


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
    return f"{format_count(len(samples), 'replicate')}, {format_ns(min(samples))} to {format_ns(max(samples))}"


def expected_words(judgement: Judgement) -> str:
    """Return the forecast with its interval."""
    expected, interval = format_ns(judgement.expected_ns), expected_interval(judgement)
    return f"{expected} ({interval})" if interval else expected


def expected_interval(judgement: Judgement) -> str:
    """Return the interval of the forecast; empty where it has none."""
    if judgement.lower_ns is None or judgement.upper_ns is None:
        return ""
    return f"{format_ns(judgement.lower_ns)} to {format_ns(judgement.upper_ns)}"


def old_word(judgement: Judgement) -> str:
    """Return what the time before is called: the other side of the pairs, or the baseline."""
    return "Old side" if judgement.baseline_samples_ns else "Baseline"
