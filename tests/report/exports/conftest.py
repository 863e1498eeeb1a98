"""Runs that say given words wherever a run can say some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

from perfsuite.records.run_file import RunFile
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run

#: What examples of Hypothesis are drawn from; halves of characters have no UTF-8.
_SIGNS = "`|\\<>&@#:%,;=+-\"'[]()!*_~/\n\r\t a1.\u202eא"
WORDS = st.one_of(st.text(), st.text(alphabet=_SIGNS), st.sampled_from(HOSTILE_NAMES))

HARMLESS = "harmless"

#: All control characters: C0, DEL and C1.
CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))


def run_of(words: str) -> RunFile:
    """A run that says the words in ids, roles, reasons, machine, commit and command; its figures are the same."""
    said: RunFile = _said(_harmless_run(), words)
    return said


@lru_cache
def _harmless_run() -> RunFile:
    run = synthetic_run(n_cases=45, names=[HARMLESS])
    return replace(run, judgements=tuple(replace(each, reason=HARMLESS) for each in run.judgements))


def _said(value: Any, words: str) -> Any:
    """Replace the harmless words wherever they stand."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return value.replace(HARMLESS, words)
    if isinstance(value, tuple):
        return tuple(_said(each, words) for each in value)
    if isinstance(value, Mapping):
        return {key: _said(each, words) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{each.name: _said(getattr(value, each.name), words) for each in fields(value)})
    return value
