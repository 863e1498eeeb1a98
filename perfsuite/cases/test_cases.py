"""The shipped cases: one test for each case that a run enumerates, of each kind a function."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_binding(binding_case: str, perf: Perf) -> None:
    """Each latency that a program sees, and each part of it, is within its baseline."""
    perf.judge(binding_case)


def test_binding_percentile(percentile_case: str, perf: Perf) -> None:
    """The slowest tokens come within their baseline; judged where --perf-margin names percentiles."""
    perf.judge(percentile_case)


def test_counted(counted_case: str, perf: Perf) -> None:
    """Each phase and operator does as much as its baseline says."""
    perf.judge(counted_case)


def test_experiment(experiment_case: str, perf: Perf) -> None:
    """Each case is judged as its experiment does."""
    perf.judge(experiment_case)


def test_fidelity(fidelity_case: str, perf: Perf) -> None:
    """What the suite measures is what an independent tracer, or kernel duplication, says that it is."""
    perf.judge(fidelity_case)


def test_kernel(kernel_case: str, perf: Perf) -> None:
    """Each kernel is within its floor, its forecast and its baseline."""
    perf.judge(kernel_case)


def test_engine_kernel(engine_kernel_case: str, perf: Perf) -> None:
    """Each kernel that the engine launches on its device is within its floor, its forecast and its baseline."""
    perf.judge(engine_kernel_case)


def test_operator(operator_case: str, perf: Perf) -> None:
    """Each operator is within its floor, its forecast and its baseline."""
    perf.judge(operator_case)


def test_overhead(overhead_case: str, perf: Perf) -> None:
    """A recorder, or several together, cost a phase no more than is promised."""
    perf.judge(overhead_case)


def test_phase(phase_case: str, perf: Perf) -> None:
    """Each phase is within its floor, its forecast and its baseline."""
    perf.judge(phase_case)


def test_roofline_point(roofline_case: str, perf: Perf) -> None:
    """Each point is under its roof, and where it was."""
    perf.judge(roofline_case)


def test_roofline_statement(roofline_statement: str, perf: Perf) -> None:
    """Each phase is limited by what must limit it, and series have their order."""
    perf.holds(roofline_statement)


def test_trace(trace_case: str, perf: Perf) -> None:
    """Threads share work, attention grows with the context, products with their size, as the rules say."""
    perf.judge(trace_case)
