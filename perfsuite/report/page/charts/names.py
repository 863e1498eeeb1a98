"""Names as figures have room for them: short, cut in the middle, and no two alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence

from perfsuite.records.outcome import Judgement
from perfsuite.report.charts.svg import cut_middle
from perfsuite.report.visible import isolated

#: Characters of a name in a legend.
ROW_CHARACTERS = 22


#: What turns the direction of the text around it: marks, embeddings, overrides and isolates.
_TURNS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def readable(name: str) -> str:
    """Return a name on one line and without control characters, that cannot turn the words beside it around."""
    return isolated(_plain(name))


def _plain(name: str) -> str:
    kept = "".join(" " if unicodedata.category(each) == "Cc" else each for each in name if each not in _TURNS)
    return " ".join(kept.split()) or "(no name)"


def short_names(names: Iterable[str], most: int = ROW_CHARACTERS) -> tuple[str, ...]:
    """Cut names to so many characters, no two alike: where the middle tells them apart, at an end, else numbered."""
    plain = [_plain(name) for name in names]
    groups: dict[str, list[str]] = {}
    for name in plain:
        groups.setdefault(cut_middle(name, most), []).append(name)
    cuts = {middle: _best_cut(group, most) for middle, group in groups.items()}
    taken: dict[str, None] = {}
    for name in plain:
        cut = cuts[cut_middle(name, most)]
        short, number = cut(name, most), 1
        while short in taken:
            number += 1
            short = f"{cut(name, most - 4)} ({number})"
        taken[short] = None
    return tuple(map(isolated, taken))


def _best_cut(alike: Sequence[str], most: int) -> Callable[[str, int], str]:
    """Return the cut that tells the most of these names apart, which are alike when they are cut in the middle."""
    return max((cut_middle, _cut_end, _cut_start), key=lambda cut: len({cut(name, most) for name in alike}))


def _cut_end(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cut_start(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[len(text) - most + 1 :]}"


def case_name(judgement: Judgement) -> str:
    """Name a case without what all cases of a run share: ``prefill``, ``decode/ffn_up``, ``gemm/m64-n128-k576/f32``."""
    return readable(_without_shared(judgement))


def _without_shared(judgement: Judgement) -> str:
    parts = judgement.case_id.split("/")
    if judgement.kind in ("phase", "counted") and len(parts) >= 4:
        return "/".join(parts[3:])
    if judgement.kind in ("operator", "engine_kernel") and len(parts) >= 5:
        return "/".join(parts[3:])
    return judgement.case_id.removeprefix(f"{judgement.kind}/") or judgement.case_id


def phase_of(judgement: Judgement) -> str | None:
    """Return the phase that an operator is part of; None where its id tells none."""
    parts = judgement.case_id.split("/")
    return parts[3] if judgement.kind == "operator" and len(parts) >= 5 else None


def role_of(judgement: Judgement) -> str:
    """Return what an operator is called within its phase."""
    return readable("/".join(judgement.case_id.split("/")[4:]) or judgement.case_id)
