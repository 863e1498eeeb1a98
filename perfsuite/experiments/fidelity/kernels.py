"""Kernels against kernel duplication."""

from __future__ import annotations

from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow
from perfsuite.records.duplication import KernelDuplication


def kernel_row(duplication: KernelDuplication) -> FidelityRow:
    """Return a kernel's row: END - START against G, with the device's time line beside it.

    `KernelDuplication` has the formulas; the interval is that of G over the rounds.
    """
    truth, execution = duplication.ground_truth_ns, duplication.execution_ns
    truths = duplication.ground_truths_ns
    return FidelityRow(
        name=duplication.name,
        kind=FidelityKind.KERNELS,
        measured_ns=execution,
        ground_truth_ns=truth,
        error_ns=None if truth is None or execution is None else execution - truth,
        n=duplication.n_duplicates,
        interval_ns=(min(truths), max(truths)) if truths else None,
        ground_truth="duplication",
        beside_ns=_beside(duplication),
        note=_note(duplication),
        problem=duplication.problem or _problem(truth),
    )


def _beside(duplication: KernelDuplication) -> dict[str, float]:
    found = {"occupied_ns": duplication.occupied_ns, "base_execution_ns": duplication.base_execution_ns}
    return {name: value for name, value in found.items() if value is not None}


def _note(duplication: KernelDuplication) -> str:
    if duplication.n_duplicates >= duplication.n_wanted:
        return ""
    return f"{duplication.n_duplicates} duplicates of {duplication.n_wanted}: the time budget allows no more"


def _problem(truth: float | None) -> str | None:
    if truth is None:
        return "no round was measured"
    return None if truth > 0 else f"the ground truth is {truth:.0f} ns: the base run took as long as the duplicated one"
