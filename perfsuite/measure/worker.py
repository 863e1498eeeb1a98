"""The child process of a replicate: ``python -m perfsuite.measure.worker PLAN RECORD``.

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

import msgspec

from perfsuite.device.process_start import end_with_parent
from perfsuite.errors import PerfsuiteError
from perfsuite.measure import plan as plans
from perfsuite.measure.contention import USABLE_PROCESSORS, Contention, ContentionMark, contended
from perfsuite.measure.launch import FAILURE_MARK, PARENT_NAME, READY_MARK
from perfsuite.measure.plan import dump_record, load_plan, task_of


def main(arguments: list[str]) -> int:
    """Run one plan; return the exit code."""
    plan_path, record_path = Path(arguments[0]), Path(arguments[1])
    try:
        plan = load_plan(plan_path.read_bytes())
        payload = _RUNNERS[type(plan)](plan)
    except PerfsuiteError as error:
        print(f"\n{FAILURE_MARK}{' '.join(str(error).split())}", flush=True)
        return 1
    partial = record_path.with_suffix(".part")
    partial.write_bytes(dump_record(task_of(plan), payload))
    os.replace(partial, record_path)
    return 0


def peak_rss_bytes() -> int:
    """Return the largest resident size that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _sentinels(cache_dir: str, n_threads: int) -> dict[str, int]:
    """Run the sentinels: after the measurement, which they must not disturb, and outside of its contention.

    OpenMP may have bound this thread to one processor, and threads that it starts would share that one.
    """
    from perfsuite.measure.native import load_probe_library
    from perfsuite.measure.probes import measure_sentinels

    os.sched_setaffinity(0, USABLE_PROCESSORS)
    return measure_sentinels(load_probe_library(Path(cache_dir)), n_threads).to_plain()


def _run_independent(plan: plans.IndependentPlan) -> dict[str, Any]:
    from perfsuite.measure.independent_rates import measure_numpy

    with contended() as contention:
        rates = measure_numpy(
            n_threads=plan.n_threads, working_set_bytes=plan.working_set_bytes, budget_ms=plan.budget_ms
        )
    return {"rates": [each.to_plain() for each in rates], **contention}


def _run_binding(plan: plans.BindingPlan) -> dict[str, Any]:
    """Take a turn each time that a line comes in, and say how long its threads waited, of how long, ns."""
    from perfsuite.measure.binding import opened_binding

    turns: list[Contention] = []
    with opened_binding(plan.llama) as binding:
        binding.warm_up()
        print(f"\n{READY_MARK}", flush=True)
        for _ in sys.stdin:
            before = ContentionMark.take()
            binding.run()
            turns.append(before.until(ContentionMark.take()))
            print(f"\n{READY_MARK} {turns[-1].waiting_ns or 0} {turns[-1].wall_ns}", flush=True)
        resident_bytes = peak_rss_bytes()
        record, engine_record = binding.record(), binding.engine_record()
    return {
        "binding": msgspec.to_builtins(record),
        "engine": engine_record.to_plain(),
        "contention": Contention.total(turns).to_plain(),
        "peak_rss_bytes": resident_bytes,
        **({"sentinels": _sentinels(plan.llama.cache_dir, plan.llama.n_threads)} if plan.has_sentinels else {}),
    }


_RUNNERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    plans.IndependentPlan: _run_independent,
    plans.BindingPlan: _run_binding,
}


def keep_own_output() -> None:
    """Keep the standard output for what Python says; what libraries print there goes to the standard error."""
    sys.stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


if __name__ == "__main__":
    if PARENT_NAME in os.environ:
        end_with_parent(int(os.environ[PARENT_NAME]))
    keep_own_output()
    sys.exit(main(sys.argv[1:]))
