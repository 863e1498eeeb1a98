"""The child process of a replicate: ``python -m perfsuite.measure.worker PLAN.json RECORD.msgpack``.

It prints one marked line and exits with 1 when it fails for a reason that a user can act on. It writes its record
whole or not at all.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError, PerfsuiteError
from perfsuite.measure.contention import ContentionMark
from perfsuite.measure.launch import FAILURE_MARK
from perfsuite.measure.plan import (
    DevicesPlan,
    KernelPlan,
    LlamaPlan,
    OverheadPlan,
    ProbePlan,
    dump_record,
    load_plan,
    task_of,
)


def main(arguments: list[str]) -> int:
    """Run one plan; return the exit code."""
    plan_path, record_path = Path(arguments[0]), Path(arguments[1])
    try:
        plan = load_plan(plan_path.read_text())
        payload = _RUNNERS[type(plan)](plan)
    except PerfsuiteError as error:
        print(f"{FAILURE_MARK}{' '.join(str(error).split())}", flush=True)
        return 1
    partial = record_path.with_suffix(".part")
    partial.write_bytes(dump_record(task_of(plan), payload))
    os.replace(partial, record_path)
    return 0


def peak_rss_bytes() -> int:
    """Return the largest resident size that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _run_llama(plan: LlamaPlan) -> dict[str, Any]:
    from perfsuite.measure.llama import open_engine

    library = _engine_library(plan)
    with open_engine(library, plan) as engine:
        engine.warm_up(plan)
        before = ContentionMark.take()
        engine.run(plan)
        contention = before.until(ContentionMark.take())
        record = engine.record()
    return {
        "engine": record.to_plain(),
        "contention": contention.to_plain(),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def _run_overhead(plan: OverheadPlan) -> dict[str, Any]:
    from perfsuite.measure.llama import measure_overhead
    from perfsuite.records.events import Phase

    library = _engine_library(plan.llama)
    before = ContentionMark.take()
    plain, recorded = measure_overhead(library, plan.llama, phase=Phase(plan.phase), n_pairs=plan.n_pairs)
    contention = before.until(ContentionMark.take())
    return {"plain_ns": plain, "recorded_ns": recorded, "contention": contention.to_plain()}


def _engine_library(plan: LlamaPlan) -> Any:
    from perfsuite.measure.engine import find_engine
    from perfsuite.measure.native import load_engine_library

    engine = find_engine(Path(plan.library_dir))
    if engine.build_id != plan.engine_build_id:
        raise EngineError(
            f"{plan.library_dir}: holds build {engine.build_id}, the plan was made for {plan.engine_build_id}; "
            "run again"
        )
    return load_engine_library(engine, Path(plan.cache_dir))


def _run_probes(plan: ProbePlan) -> dict[str, Any]:
    from perfsuite.measure.native import load_probe_library
    from perfsuite.measure.probes import measure_ceilings

    library = load_probe_library(Path(plan.cache_dir))
    before = ContentionMark.take()
    ceilings = measure_ceilings(library, n_threads=plan.n_threads, budget_ms=plan.budget_ms)
    contention = before.until(ContentionMark.take())
    return {"ceilings": ceilings.to_plain(), "contention": contention.to_plain()}


def _run_kernels(plan: KernelPlan) -> dict[str, Any]:
    from perfsuite.measure.opencl import measure_kernels
    from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

    wanted = set(plan.case_ids)
    cases = tuple(case for case in STANDARD_KERNELS if case.case_id in wanted)
    before = ContentionMark.take()
    records = measure_kernels(
        cases, platform=plan.platform, repetitions=plan.n_repetitions, seed=plan.seed, log_dir=Path(plan.log_dir)
    )
    contention = before.until(ContentionMark.take())
    return {
        "kernels": [record.to_plain() for record in records],
        "contention": contention.to_plain(),
        "peak_rss_bytes": peak_rss_bytes(),
    }


def _run_devices(plan: DevicesPlan) -> dict[str, Any]:
    from perfsuite.measure.opencl_platform import choose_device, list_devices

    chosen = choose_device(plan.platform)
    return {"chosen": chosen.to_plain(), "devices": [device.to_plain() for device in list_devices()]}


_RUNNERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    LlamaPlan: _run_llama,
    OverheadPlan: _run_overhead,
    ProbePlan: _run_probes,
    KernelPlan: _run_kernels,
    DevicesPlan: _run_devices,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
