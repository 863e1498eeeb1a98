"""Fidelity on the terminal: phases, operators, kernels, and under which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfsuite.cli.answer import Part, Sheet, figure
from perfsuite.experiments.fidelity.limits import (
    LEAST_KERNEL_NS,
    SHORT_PHASE_NS,
    SHORTEST_KERNEL_NS,
    long_kernels,
    mean_accuracy_percent,
    short_kernels,
    statements,
    worst_row,
)
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.units import format_ns, format_signed_ns


def fidelity_parts(run: FidelityRun) -> Iterator[Part]:
    """Yield a sheet for each kind, the mean and the worst of the kernels, the conditions, and what falls short."""
    for kind, title in ((FidelityKind.PHASES, "Phases"), (FidelityKind.OPERATORS, "Operators, summed up")):
        if rows := run.of(kind):
            yield _phase_sheet(title, rows)
    yield from _kernel_parts(run)
    told = {"device": run.device, **({"OpenCL": run.platform} if run.platform else {}), **run.conditions}
    yield "; ".join(f"{name} {value}" for name, value in told.items())
    for problem in run.problems:
        yield f"not measured: {problem}"
    yield from _statement_lines(run)


def _kernel_parts(run: FidelityRun) -> Iterator[Part]:
    groups = (
        (f"Kernels of {format_ns(LEAST_KERNEL_NS)} and more", long_kernels(run.rows)),
        (f"Kernels of {format_ns(SHORTEST_KERNEL_NS)} to {format_ns(LEAST_KERNEL_NS)}", short_kernels(run.rows)),
    )
    for title, rows in groups:
        if not rows:
            continue
        yield _kernel_sheet(title, rows)
        worst, mean = worst_row(rows), mean_accuracy_percent(rows)
        if worst is not None:
            yield f"mean {mean:.2f} %, worst {worst.accuracy_percent:.2f} % ({worst.name}) of {len(rows)}"
        yield from (f"  {row.name}: {row.note}" for row in rows if row.note)
    for row in run.of(FidelityKind.KERNELS):
        if not row.is_measured:
            yield f"not measured: {row.name}: {row.problem}"


def _phase_sheet(title: str, rows: Sequence[FidelityRow]) -> Sheet:
    return Sheet(
        ("name", ">n", ">measured", ">ground truth", ">by", ">error", ">accuracy", ">µs/ms"),
        [
            (
                *(row.name, row.n, format_ns(row.measured_ns), format_ns(row.ground_truth_ns), row.ground_truth),
                *(_error_text(row), *_scores(row)),
            )
            for row in rows
        ],
        title,
    )


def _error_text(row: FidelityRow) -> str:
    is_short = (row.ground_truth_ns or 0) < SHORT_PHASE_NS
    return figure("{:+.0f} ns", row.error_ns) if is_short else format_signed_ns(row.error_ns)


def _kernel_sheet(title: str, rows: Sequence[FidelityRow]) -> Sheet:
    return Sheet(
        ("name", ">n", ">END-START", ">ground truth", ">from", ">to", ">accuracy", ">µs/ms", ">occupied"),
        [
            (
                *(row.name.removeprefix("kernel/"), row.n, format_ns(row.measured_ns), format_ns(row.ground_truth_ns)),
                *map(format_ns, row.interval_ns or (None, None)),
                *(*_scores(row), format_ns(row.beside_ns.get("occupied_ns"))),
            )
            for row in rows
        ],
        title,
    )


def _scores(row: FidelityRow) -> tuple[str, str]:
    return figure("{:.2f} %", row.accuracy_percent), figure("{:.3f}", row.scaled_error_us_per_ms)


def _statement_lines(run: FidelityRun) -> Iterator[str]:
    found = statements(run.rows)
    if found:
        yield f"limits: {sum(each.holds is True for each in found)} of {len(found)} hold"
    for each in found:
        if each.holds is not True:
            word = "not so" if each.holds is False else "undecided"
            yield f"  {each.name}: {word}: {each.claim}; {each.evidence}"
