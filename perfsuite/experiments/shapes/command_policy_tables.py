"""What ``perfsuite policy`` answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of
from perfsuite.experiments.shapes.policy_check import Holding, PromiseCheck
from perfsuite.experiments.shapes.policy_record import Gain, PolicyRow, PolicyTable, ShapePolicy, policy_plain
from perfsuite.units import format_count


def finding(table: PolicyTable) -> str:
    """Return such as ``cpu throughout, n 1 to 377`` or ``cpu up to n 143, opencl above``."""
    rows, dimension = table.rows, table.dimension
    if len(rows) == 1:
        return f"{rows[0].choice} throughout, {dimension} {range_text(rows[0].least, rows[0].most)}"
    parts = ", ".join(f"{row.choice} up to {dimension} {row.most}" for row in rows[:-1])
    gaps = ", ".join(f"{left.measured_most} and {right.measured_least}" for left, right in pairwise(rows))
    return f"{parts}, {rows[-1].choice} above; interpolated between {dimension} {gaps}"


def promise(table: PolicyTable) -> str:
    """Return what the whole table promises over its default, or that it promises nothing, and over the worst choice."""
    if all(row.choice == table.default for row in table.rows):
        told = f"promises no gain over the best single choice, {table.default}, which is what it says"
    else:
        told = f"promises {gain_text(table.gain_over_default)} over the best single choice, {table.default}"
    if table.worst == table.default:
        return told
    return f"{told}; {gain_text(table.gain_over_worst)} over the worst, {table.worst}"


def gain_text(gain: Gain) -> str:
    """Return a gain with its interval."""
    if gain.lower_ratio == gain.upper_ratio:
        return f"{gain.ratio:.3g}x"
    return f"{gain.ratio:.3g}x ({gain.lower_ratio:.3g} to {gain.upper_ratio:.3g})"


def range_text(least: int, most: int) -> str:
    """Return both ends, or the one size that there is."""
    return str(least) if least == most else f"{least} to {most}"


#: Raised whenever a key of the JSON of checks changes its meaning.
SCHEMA = 1


def policy_answer(policy: ShapePolicy) -> Answer:
    """Return each table with what it says, what it promises, and what was left out."""
    return Answer(parts=lambda: _policy_parts(policy), plain=lambda: policy_plain(policy))


def checks_answer(checked: Sequence[tuple[PolicyTable, Sequence[PromiseCheck]]]) -> Answer:
    """Return what each row promises, what was measured, and whether it holds."""
    return Answer(
        parts=lambda: (part for table, checks in checked for part in _check_parts(table, checks)),
        plain=lambda: {
            "schema": SCHEMA,
            "tables": [
                {"table": table.title, "checks": [_plain_check(each) for each in checks]} for table, checks in checked
            ],
        },
    )


def _policy_parts(policy: ShapePolicy) -> Iterator[Part]:
    for subject in policy.subjects:
        yield f"{subject.subject.value}: {subject.device}"
    for table in policy.tables:
        yield f"\n{_title(table)}"
        yield Sheet(
            (table.dimension, "choice", "over the default", "over the worst"),
            [
                (
                    *(range_text(row.least, row.most), row.choice),
                    "the default itself" if row.choice == table.default else gain_text(row.gain_over_default),
                    "the worst itself" if row.choice == table.worst else gain_text(row.gain_over_worst),
                )
                for row in table.rows
            ],
        )
        yield f"{finding(table)}; {promise(table)}"
        sizes = ", ".join(map(str, table.measured_sizes))
        yield f"measured at {table.dimension} {sizes}; beyond them nothing is known, and the default holds"
        yield from (f"left out: {each.choice}: {each.reason}" for each in table.left_out)


def _check_parts(table: PolicyTable, checks: Sequence[PromiseCheck]) -> Iterator[Part]:
    if not checks:
        yield f"\n{table.title}: nothing to check, there is one choice only"
        return
    yield f"\n{_title(table)}"
    yield Sheet(
        (f"{table.dimension}", "choice", "over", "promised", "measured", ""),
        [
            (
                *(range_text(each.row.least, each.row.most), each.row.choice),
                *(each.claim.over, gain_text(each.claim.promised)),
                *(each.measured and gain_text(each.measured), each.holding.value),
            )
            for each in checks
        ],
    )
    for row, drawn in {each.row: each.claim.drawn for each in checks}.items():
        fitted = ", ".join(map(str, drawn.fitted_sizes))
        told = f"; the choice was made at {fitted} as well" if fitted else ""
        yield f"{_where(table, row)}: measured at {', '.join(map(str, drawn.sizes))}{told}"
    for each in checks:
        if each.reason:
            sides = f"{each.row.choice} over {each.claim.over}"
            yield f"{_where(table, each.row)}, {sides}: {each.holding.value}: {each.reason}"
    counts = {holding: sum(each.holding is holding for each in checks) for holding in Holding}
    told = ", ".join(f"{holding.value} {n}" for holding, n in counts.items() if n)
    yield f"{format_count(len(checks), 'promise')}: {told}"


def _where(table: PolicyTable, row: PolicyRow) -> str:
    return f"{table.dimension} {range_text(row.least, row.most)}"


def _title(table: PolicyTable) -> str:
    return f"{table.title}; default {table.default}, worst {table.worst}"


def _plain_check(check: PromiseCheck) -> dict[str, Any]:
    row, drawn = check.row, check.claim.drawn
    return {
        **fields_of(row, "least", "most"),
        "choice": str(row.choice),
        "over": str(check.claim.over),
        "promised": asdict(check.claim.promised),
        "measured": None if check.measured is None else asdict(check.measured),
        **{name: list(sizes) for name, sizes in fields_of(drawn, "sizes", "fitted_sizes").items()},
        "holding": check.holding.value,
        "reason": check.reason or None,
    }
