"""The eBPF recorder beside a run of the suite's own, started from within the worker once its model is loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import MeasurementError
from perfsuite.measure.engine import find_engine
from perfsuite.measure.plan import EbpfPlan, LlamaPlan

if TYPE_CHECKING:
    from perfsuite.measure.ebpf import EbpfRecording


@contextmanager
def ebpf_recorded(plan: LlamaPlan) -> Iterator[list[str]]:
    """Record what this process does meanwhile, where its plan asks for that; in the end the list says what is left out.

    Raises `MeasurementError` where the helper cannot attach, or ended too early.
    """
    notes: list[str] = []
    if plan.ebpf is None:
        yield notes
        return
    with start_recording(plan, plan.ebpf) as recording:
        yield notes
        notes += recording.finish()


def start_recording(plan: LlamaPlan, ebpf: EbpfPlan) -> EbpfRecording:
    """Attach the helper to this process; raises as `start_ebpf` does."""
    from perfsuite.measure.ebpf import start_ebpf  # few runs are traced
    from perfsuite.measure.tensor_layout import tensor_layout

    layout = tensor_layout(find_engine(Path(plan.library_dir)), Path(plan.cache_dir))
    return start_ebpf(os.getpid(), ebpf, layout)


def required_ebpf(plan: LlamaPlan) -> EbpfPlan:
    """Return what a plan says of the eBPF recorder; `MeasurementError` where it says nothing."""
    if plan.ebpf is None:
        raise MeasurementError("the plan of an eBPF recording names no helper; run again")
    return plan.ebpf
