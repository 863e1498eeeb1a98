"""What people call things: kinds of cases, outcomes, and what was measured when from which commit."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfsuite.records.outcome import Outcome
from perfsuite.records.run_file import RunFile, moment_of
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.reproduce import option_value

#: The kinds in their order, one and several; others follow by name.
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

#: How the engine names itself, as `ps_engine_version` puts it together. ggml's commit is that of the sources which both
#: were built from.
_ENGINE = re.compile(r"llama (?P<version>[^\s,]+), ggml [^\s,]+(?: (?P<commit>[^\s,]+))?")


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
    """Return where a kind comes in the order of all."""
    order = list(_KINDS)
    return (order.index(kind) if kind in order else len(order)), kind


def capitalized(sentence: str) -> str:
    """Return the sentence with a capital at its beginning and all else as it is."""
    return f"{sentence[:1].upper()}{sentence[1:]}"


def engine_words(subjects: Mapping[str, str]) -> str:
    """Return what a run measured, by group where there are several."""
    names = {group: _engine_name(subject) for group, subject in subjects.items()}
    return "; ".join(name if len(names) == 1 else f"{group}: {name}" for group, name in names.items())


def _engine_name(subject: str) -> str:
    """Call the engine by its name: ``llama.cpp b6123 (abc1234), build ...``; other words stay as they are."""
    match = _ENGINE.match(subject)
    if match is None:  # "unknown" is the version of an engine that gave no valid record
        return subject.replace("unknown", "llama.cpp", 1) if subject.startswith("unknown, build ") else subject
    commit = "" if match["commit"] in (None, "unknown") else f" ({match['commit']})"
    return f"llama.cpp {match['version']}{commit}{subject[match.end() :]}"


def commit_title(origin: RunOrigin) -> str:
    """Return of what the run's commit is: of what was measured, where somebody named it, else of where pytest ran."""
    return "Run from commit" if option_value(origin, "--perf-commit") is None else "Measured commit"


def commit_words(run: RunFile) -> str:
    """Return the commit that the run stood on, short, with its branch and whether files differed from it."""
    commit = run.origin.commit
    if commit is None:
        return "not known"
    branch = f" on {commit.branch}" if commit.branch else ""
    return f"{commit.sha[:12]}{branch}{', with changes' if commit.is_dirty else ''}"


def when_words(started_at: str) -> str:
    """Return a time of ISO 8601 to the minute, in UTC; what is no such time, as it is."""
    moment = moment_of(started_at)
    return started_at if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"
