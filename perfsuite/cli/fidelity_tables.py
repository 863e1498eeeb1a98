"""Fidelity on the terminal: phases, operators, kernels, and under which conditions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.cli.commands import show
from perfsuite.units import format_ns, format_signed_ns
from perfsuite.verdict.fidelity import FidelityKind, FidelityRow, FidelityRun
from perfsuite.verdict.fidelity_limits import (
    LEAST_KERNEL_NS,
    SHORT_PHASE_NS,
    SHORTEST_KERNEL_NS,
    long_kernels,
    mean_accuracy_percent,
    short_kernels,
    statements,
    worst_row,
)


def show_fidelity(run: FidelityRun) -> None:
    """Print a table for each kind, the mean and the worst of the kernels, the conditions, and what falls short."""
    for kind, title in ((FidelityKind.PHASES, "Phases"), (FidelityKind.OPERATORS, "Operators, summed up")):
        if rows := run.of(kind):
            show(_phase_table(title, rows))
    _show_kernels(run)
    told = {"device": run.device, **({"OpenCL": run.platform} if run.platform else {}), **run.conditions}
    print("; ".join(f"{name} {value}" for name, value in told.items()))
    for problem in run.problems:
        print(f"not measured: {problem}")
    _say_statements(run)


def _show_kernels(run: FidelityRun) -> None:
    groups = (
        (f"Kernels of {format_ns(LEAST_KERNEL_NS)} and more", long_kernels(run.rows)),
        (f"Kernels of {format_ns(SHORTEST_KERNEL_NS)} to {format_ns(LEAST_KERNEL_NS)}", short_kernels(run.rows)),
    )
    for title, rows in groups:
        if not rows:
            continue
        show(_kernel_table(title, rows))
        worst, mean = worst_row(rows), mean_accuracy_percent(rows)
        if worst is not None:
            print(f"mean {mean:.2f} %, worst {worst.accuracy_percent:.2f} % ({worst.name}) of {len(rows)}")
        for row in rows:
            if row.note:
                print(f"  {row.name}: {row.note}")
    for row in run.of(FidelityKind.KERNELS):
        if not row.is_measured:
            print(f"not measured: {row.name}: {row.problem}")


def _phase_table(title: str, rows: Sequence[FidelityRow]) -> Table:
    table = _table(title, "n", "measured", "ground truth", "by", "error", "accuracy", "µs/ms")
    for row in rows:
        is_short = (row.ground_truth_ns or 0) < SHORT_PHASE_NS
        table.add_row(
            escape(row.name),
            str(row.n),
            format_ns(row.measured_ns),
            format_ns(row.ground_truth_ns),
            row.ground_truth,
            f"{row.error_ns:+.0f} ns" if is_short and row.error_ns is not None else format_signed_ns(row.error_ns),
            *_scores(row),
        )
    return table


def _kernel_table(title: str, rows: Sequence[FidelityRow]) -> Table:
    table = _table(title, "n", "END-START", "ground truth", "from", "to", "accuracy", "µs/ms", "occupied")
    for row in rows:
        least, most = row.interval_ns or (None, None)
        table.add_row(
            escape(row.name.removeprefix("kernel/")),
            str(row.n),
            format_ns(row.measured_ns),
            format_ns(row.ground_truth_ns),
            format_ns(least),
            format_ns(most),
            *_scores(row),
            format_ns(row.beside_ns.get("occupied_ns")),
        )
    return table


def _table(title: str, *names: str) -> Table:
    columns = (Column(name, justify="right", no_wrap=True) for name in names)
    return Table(Column("name", overflow="fold"), *columns, title=title, title_justify="left", box=None, pad_edge=False)


def _scores(row: FidelityRow) -> tuple[str, str]:
    accuracy, error = row.accuracy_percent, row.scaled_error_us_per_ms
    return (
        "-" if accuracy is None else f"{accuracy:.2f} %",
        "-" if error is None else f"{error:.3f}",
    )


def _say_statements(run: FidelityRun) -> None:
    found = statements(run.rows)
    if not found:
        return
    held = [each for each in found if each.holds]
    print(f"limits: {len(held)} of {len(found)} hold")
    for each in found:
        if each.holds is not True:
            word = "not so" if each.holds is False else "undecided"
            print(f"  {each.name}: {word}: {each.claim}; {each.evidence}")
