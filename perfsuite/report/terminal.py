"""The summary on the terminal: a table by kind, then what to do next."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.report.failures import failure_lines, shift_line
from perfsuite.units import format_change, format_ns

_STYLES = {
    Outcome.PASS: "green",
    Outcome.IMPROVED: "bold green",
    Outcome.NEW: "cyan",
    Outcome.REGRESSED: "bold red",
    Outcome.SLOW: "bold red",
    Outcome.IMPOSSIBLE: "bold red",
}

#: Narrower than this a table folds its names.
_LEAST_WIDTH = 110

#: The kinds in the order in which they are shown; others follow.
_TITLES = {
    "phase": "Phases",
    "operator": "Operators",
    "engine_kernel": "Kernels of the engine",
    "kernel": "Kernels",
    "roofline": "Sweeps",
}


def summary_text(judgements: Sequence[Judgement], *, width: int, is_color: bool) -> str:
    """Render the tables of all kinds."""
    out = io.StringIO()
    console = Console(
        file=out, width=max(width, _LEAST_WIDTH), force_terminal=is_color, no_color=not is_color, highlight=False
    )
    for kind in sorted({judgement.kind for judgement in judgements}, key=_place):
        console.print(_table(kind, [judgement for judgement in judgements if judgement.kind == kind]))
    return out.getvalue()


def next_step(
    judgements: Iterable[Judgement], run_path: str, attribution: Attribution = NO_ATTRIBUTION
) -> tuple[str, ...]:
    """Return the closing lines: what came out, and what to do next."""
    found = tuple(judgements)
    counts = Counter(judgement.outcome for judgement in found)
    told = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome if counts[outcome])
    lines = [f"perfsuite: {told or 'nothing was measured'}; {run_path}"]
    failed = [judgement for judgement in found if judgement.outcome.fails]
    if attribution.uniform_shift and (counts[Outcome.REGRESSED] or counts[Outcome.IMPROVED]):
        lines.append(shift_line(attribution.uniform_shift))
    lines += failure_lines(failed, attribution)
    for outcome in (Outcome.INVALID, Outcome.INCOMPARABLE):
        reasons = Counter(each.reason for each in found if each.outcome is outcome)
        lines += [f"  {outcome.value} ({count} cases): {reason}" for reason, count in reasons.most_common(3)]
    if counts[Outcome.NEW] and not failed:
        lines.append("  no baseline for the new cases: run again with --baseline=record to keep these as the reference")
    return tuple(lines)


def _place(kind: str) -> tuple[int, str]:
    order = list(_TITLES)
    return (order.index(kind) if kind in order else len(order)), kind


def _table(kind: str, judgements: Sequence[Judgement]) -> Table:
    prefix = _common_prefix([judgement.case_id for judgement in judgements])
    title = f"{_TITLES.get(kind, kind.capitalize())} {prefix.split('/', 1)[1].rstrip('/')}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in ("measured", "expected", "baseline", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for judgement in judgements:
        table.add_row(
            judgement.case_id[len(prefix) :],
            format_ns(judgement.measured_ns),
            format_ns(judgement.expected_ns),
            format_ns(judgement.baseline_ns),
            format_change(judgement.change_ratio),
            judgement.outcome.value,
            style=_STYLES.get(judgement.outcome, "yellow"),
        )
    return table


def _common_prefix(case_ids: Sequence[str]) -> str:
    """Return the leading parts, slash included, that all ids share; each id keeps its last part."""
    split = [case_id.split("/") for case_id in case_ids]
    shared = 0
    while shared < min(len(parts) for parts in split) - 1 and len({parts[shared] for parts in split}) == 1:
        shared += 1
    return "".join(f"{part}/" for part in split[0][: max(1, shared)])
