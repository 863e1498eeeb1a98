"""What cases, kinds and outcomes are called on the page, and where a link to a case leads."""

from __future__ import annotations

from urllib.parse import quote

from perfsuite.records.outcome import Outcome

#: What a link to a case begins with, after the ``#``.
ANCHOR = "case="

#: The kinds in the order of the page, one and several; others follow by name.
_KINDS = {
    "phase": ("phase", "Phases"),
    "operator": ("operator", "Operators"),
    "engine_kernel": ("kernel of the engine", "Kernels of the engine"),
    "kernel": ("kernel", "Kernels"),
    "roofline": ("sweep", "Sweeps under the roofline"),
    "fidelity": ("fidelity", "Fidelity of the suite's own timings"),
    "overhead": ("overhead", "Overhead of the recorders"),
    "trace": ("trace", "Findings in traces"),
    "shape-kept": ("kept shape", "Kept shapes"),
    "shape-hunt": ("hunt for shapes", "Hunts for shapes"),
}

_OUTCOMES = {
    Outcome.INVALID: ("Invalid", "measured in a way that does not count, or not at all"),
    Outcome.IMPOSSIBLE: ("Impossible", "faster than physics allows: the measurement is wrong"),
    Outcome.INCOMPARABLE: ("Incomparable", "the baseline was made on another setup"),
    Outcome.REGRESSED: ("Regressed", "slower than before, for sure and by more than the margin"),
    Outcome.SLOW: ("Slow", "beyond the limit that the forecast sets"),
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
