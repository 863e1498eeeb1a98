"""What a trace is to hold, and the words with which a user says so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag

from perfsuite.errors import PerfsuiteError, meant


class TraceLevel(IntFlag):
    """What a recorder is asked to record; the values are those of ``native/include/perfsuite/bpf_log.h``."""

    TOKEN = 1
    GRAPH = 2
    OPERATOR = 4
    STRUCTURE = 8
    ENDS = 16
    THREADS = 32
    COUNTERS = 64
    EXPERTS = 128


_TOKEN = TraceLevel.TOKEN
_GRAPH = _TOKEN | TraceLevel.GRAPH
_OPERATOR = _GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE
_ENDS = _OPERATOR | TraceLevel.ENDS

#: What each word stands for, with what it is of no use without.
LEVELS: Mapping[str, TraceLevel] = {
    "token": _TOKEN,
    "graph": _GRAPH,
    "operator": _OPERATOR,
    "ends": _ENDS,
    "threads": _TOKEN | TraceLevel.THREADS,
    "counters": _ENDS | TraceLevel.COUNTERS,
    "experts": _OPERATOR | TraceLevel.EXPERTS,
}

#: What is recorded where nothing is said.
DEFAULT_LEVELS = "token,graph,operator"


def parse_levels(text: str, option: str) -> TraceLevel:
    """Turn a list such as ``token,graph,operator`` into levels.

    Raises PerfsuiteError: a word is none, naming `option` and the words that there are.
    """
    levels = TraceLevel(0)
    for word in text.split(","):
        if word not in LEVELS:
            known = f"{', '.join(LEVELS)}, by commas{meant(word, LEVELS)}"
            raise PerfsuiteError(f"{option}={text}: {word!r} is not a level; there are {known}")
        levels |= LEVELS[word]
    return levels


def level_words(levels: TraceLevel) -> str:
    """Say which levels these are, as `parse_levels` reads them; ``nothing`` where there are none."""
    words = [word for word, level in LEVELS.items() if level & levels == level]
    return ",".join(words) or "nothing"
