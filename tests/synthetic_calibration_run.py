"""What workers answer to the plans of a calibration, on a device that follows a known law exactly.

``python -m tests.synthetic_calibration_run PLAN RECORD`` stands in for a worker.
"""

from __future__ import annotations

import sys
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.timing.calibration_plan import quick_architectures, reference_models
from perfsuite.expectation.timing.engine_times import phase_operators
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.plan import LlamaPlan, OperatorsPlan, Plan, ProbePlan, dump_record, load_plan, task_of
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.testing.engine_traces import evaluation
from perfsuite.workload.scenario import Scenario
from perfsuite.workload.weights import synthetic_weights
from tests.synthetic_plans import QUIET

from .synthetic_calibration import lawful_ns

#: Before the first operator of a phase and after the last, ns.
BEFORE_NS, AFTER_NS = 200, 100


_ENGINE = EngineRecord(engine_version="llama 1", spans=(), graphs=(), n_dropped=0)
_BANDWIDTHS = [
    {"working_set_bytes": size, "read_bytes_per_s": rate, "copy_bytes_per_s": rate, "triad_bytes_per_s": rate}
    for size, rate in ((10**6, 4e11), (10**8, 5e10))
]
_RATES = {"fp32_flops_per_s": 4e11, "int8_flops_per_s": 1.6e12, "f16_flops_per_s": None, "dispatch_ns": 300}


@cache
def operators_of(name: str, n_prompt: int, phase: Phase) -> tuple[OperatorShape, ...]:
    base, _, quantization = name.rpartition("-")
    own = (*(model for model, _ in reference_models()), *quick_architectures())
    model = next(each for each in own if each.name == base)
    weights = synthetic_weights(model, quantization, cache_dir=Path("/nowhere"))
    scenario = Scenario(name="own", n_prompt=n_prompt, n_gen=12, source="of the tests' own")
    return phase_operators(llama_workload(weights, scenario), phase)


def within_ns(shape: OperatorShape, n_rounds: int) -> int:
    """Return what an operator takes within the engine: more than alone, and more in later rounds."""
    return round(lawful_ns(shape) * (1.2 + 0.1 * n_rounds))


def operator_times(plan: OperatorsPlan, n_rounds: int) -> dict[str, Any]:
    """Return the times of single operators: in each round they take a little longer."""
    return {"times_ns": [lawful_ns(shape) * (1.0 + 0.01 * n_rounds) for shape in plan.shapes]}


def engine_run(plan: LlamaPlan, n_rounds: int) -> dict[str, Any]:
    """Compute a prompt and a token, and what follows a token."""
    spans, evaluations, now_ns = [], [], 0
    for phase in (Phase.PREFILL, Phase.DECODE):
        operators = operators_of(Path(plan.gguf_path).stem, plan.n_prompt, phase)
        times = [within_ns(shape, n_rounds) for shape in operators]
        start_ns, *ends_ns = accumulate(times, initial=now_ns + BEFORE_NS)
        evaluations.append(evaluation(now_ns, *ends_ns, first_start_ns=start_ns))
        spans.append([phase.value, 0, 0, 1, now_ns, now_ns := ends_ns[-1] + AFTER_NS])
    for phase in (Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING):
        spans.append([phase.value, 0, 0, 1, now_ns, now_ns := now_ns + 1000])
    return {"engine": {**_ENGINE.to_plain(), "spans": spans, "events": b"".join(evaluations)}}


def answer(plan: Plan) -> dict[str, Any]:
    """Return what a worker sends for a plan of a calibration, or of its ceilings."""
    if isinstance(plan, ProbePlan):
        return {"ceilings": {**_RATES, "n_threads": plan.n_threads, "bandwidths": _BANDWIDTHS}}
    assert isinstance(plan, OperatorsPlan | LlamaPlan)
    measured = operator_times(plan, 1) if isinstance(plan, OperatorsPlan) else engine_run(plan, 1)
    return {**measured, "contention": QUIET}


if __name__ == "__main__":
    asked = load_plan(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_bytes(dump_record(task_of(asked), answer(asked)))
