"""What was measured, as people call it: llama.cpp by its version, commit and build."""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.reproduce import option_value

#: How the engine names itself, as `ps_engine_version` puts it together. ggml's commit is that of the sources which both
#: were built from.
_ENGINE = re.compile(r"llama (?P<version>[^\s,]+), ggml [^\s,]+(?: (?P<commit>[^\s,]+))?")

#: Stands for the version of an engine that gave no valid record.
_NEVER_RAN = "unknown"

#: What a build says that was made without git.
_NO_COMMIT = (None, "unknown")


def engine_words(subjects: Mapping[str, str]) -> str:
    """Return what a run measured, by group where there are several."""
    names = {group: _named(subject) for group, subject in subjects.items()}
    if len(names) == 1:
        return next(iter(names.values()))
    return "; ".join(f"{group}: {name}" for group, name in names.items())


def commit_title(origin: RunOrigin) -> str:
    """Return of what the run's commit is: of what was measured, where somebody named it, else of where pytest ran."""
    return "Run from commit" if option_value(origin, "--perf-commit") is None else "Measured commit"


def _named(subject: str) -> str:
    """Call the engine by its name: ``llama.cpp b6123 (abc1234), build ...``; other words stay as they are."""
    found = _ENGINE.match(subject)
    if found is None:
        return subject.replace(_NEVER_RAN, "llama.cpp", 1) if subject.startswith(f"{_NEVER_RAN}, build ") else subject
    commit = "" if found["commit"] in _NO_COMMIT else f" ({found['commit']})"
    return f"llama.cpp {found['version']}{commit}{subject[found.end() :]}"
