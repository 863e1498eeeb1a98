"""What ``perfsuite policy`` prints for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.records.shape_policy import PolicyRow, PolicyTable, ShapePolicy
from perfsuite.units import format_count
from perfsuite.verdict.shapes.policy_check import Holding, PromiseCheck
from perfsuite.verdict.shapes.policy_words import finding, gain_text, promise, range_text


def show_policy(policy: ShapePolicy) -> None:
    """Print each table with what it says, what it promises, and what was left out."""
    for subject in policy.subjects:
        print(f"{subject.subject}: {subject.device}")
    for table in policy.tables:
        print(f"\n{_title(table)}")
        show(_policy_table(table))
        print(f"{finding(table)}; {promise(table)}")
        sizes = ", ".join(map(str, table.measured_sizes))
        print(f"measured at {table.dimension} {sizes}; beyond them nothing is known, and the default holds")
        for each in table.left_out:
            print(f"left out: {each.choice}: {each.reason}")


def show_checks(table: PolicyTable, checks: Sequence[PromiseCheck]) -> None:
    """Print what each row promises, what was measured, and whether it holds."""
    if not checks:
        print(f"\n{table.title}: nothing to check, there is one choice only")
        return
    print(f"\n{_title(table)}")
    show(_check_table(table, checks))
    _say_sizes(table, checks)
    _say_reasons(table, checks)
    counts = {holding: sum(each.holding is holding for each in checks) for holding in Holding}
    told = ", ".join(f"{holding.value} {n}" for holding, n in counts.items() if n)
    print(f"{format_count(len(checks), 'promise')}: {told}")


def _policy_table(table: PolicyTable) -> Table:
    gains = (Column(f"over {each}", no_wrap=True) for each in ("the default", "the worst"))
    found = Table(table.dimension, "choice", *gains, box=None, pad_edge=False)
    for row in table.rows:
        gain = "the default itself" if row.choice == table.default else gain_text(row.gain_over_default)
        worst = "the worst itself" if row.choice == table.worst else gain_text(row.gain_over_worst)
        found.add_row(range_text(row.least, row.most), str(row.choice), gain, worst)
    return found


def _check_table(table: PolicyTable, checks: Sequence[PromiseCheck]) -> Table:
    columns = (Column(each, no_wrap=True) for each in (table.dimension, "choice", "over", "promised", "measured"))
    found = Table(*columns, "", box=None, pad_edge=False)
    for each in checks:
        row = each.promise.row
        found.add_row(
            range_text(row.least, row.most),
            str(row.choice),
            str(each.promise.over),
            gain_text(each.promise.promised),
            "-" if each.measured is None else gain_text(each.measured),
            each.holding.value,
        )
    return found


def _say_sizes(table: PolicyTable, checks: Sequence[PromiseCheck]) -> None:
    """Say where each row was measured."""
    for row, drawn in {each.promise.row: each.promise.drawn for each in checks}.items():
        fitted = ", ".join(map(str, drawn.fitted_sizes))
        told = f"; the choice was made at {fitted} as well" if fitted else ""
        print(f"{_where(table, row)}: measured at {', '.join(map(str, drawn.sizes))}{told}")


def _say_reasons(table: PolicyTable, checks: Sequence[PromiseCheck]) -> None:
    """Say what does not hold, and why."""
    for each in checks:
        if each.reason:
            sides = f"{each.promise.row.choice} over {each.promise.over}"
            print(f"{_where(table, each.promise.row)}, {sides}: {each.holding.value}: {each.reason}")


def _where(table: PolicyTable, row: PolicyRow) -> str:
    return f"{table.dimension} {range_text(row.least, row.most)}"


def _title(table: PolicyTable) -> str:
    return f"{table.title}; default {table.default}, worst {table.worst}"
