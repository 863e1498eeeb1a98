"""Counts a workload on a build that is the same everywhere: pinned compiler, C library and processor."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError, require
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.engine_runs import workload_settings
from perfsuite.measure.bundle.making import BundleOrder, make_bundle
from perfsuite.measure.bundle.steps import Tell
from perfsuite.measure.bundle.targets import find_target
from perfsuite.measure.counting import build_counting_tool, run_counted
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.records.counts import METRICS, MOST_ROWS, CountedWork, CountRow
from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.whole_file import file_digest
from perfsuite.trace.samples import replicate_samples
from perfsuite.workload.weights import materialize

#: Bits below a count that keep readings in their order where nothing was counted between them.
_ORDER_BITS = (MOST_ROWS - 1).bit_length()

_Ints = npt.NDArray[np.int64]


def counts_of(record: EngineRecord, rows: npt.NDArray[Any]) -> tuple[CountRow, ...]:
    """Return what a process did between the readings of its record, by phase and operator, in the record's order.

    Raises MeasurementError: the record has a time that is no reading, so it was not counted.
    """
    found = {metric: replicate_samples(_recounted(record, rows, metric), sum) for metric in METRICS}
    first = found[METRICS[0]]
    names: list[tuple[Phase, str]] = []
    for phase in first.phase_ns:
        names += [(phase, ""), *((phase, role) for role in first.operator_ns.get(phase, ()))]
    counts = {
        (metric, phase, role): (samples.operator_ns[phase][role] if role else samples.phase_ns[phase]) >> _ORDER_BITS
        for metric, samples in found.items()
        for phase, role in names
    }
    return tuple(
        CountRow(phase=phase.value, role=role, **{metric: counts[metric, phase, role] for metric in METRICS})
        for phase, role in names
    )


def _recounted(record: EngineRecord, rows: npt.NDArray[Any], metric: str) -> EngineRecord:
    """Return a record whose times are what was counted of a metric until then, with the reading's place below."""
    counted: _Ints = (rows[metric].astype(np.int64) << _ORDER_BITS) + np.arange(len(rows))
    events = np.frombuffer(record.events, RING_DTYPE).copy()
    events["ns"] = counted[_places(rows, events["ns"])]
    ends = _places(rows, np.array([(span.start_ns, span.end_ns) for span in record.spans], np.int64).reshape(-1, 2))
    spans = tuple(
        replace(span, start_ns=int(counted[start]), end_ns=int(counted[end]))
        for span, (start, end) in zip(record.spans, ends, strict=True)
    )
    return replace(record, spans=spans, events=events.tobytes(), thread_events=b"", clock=None)


def _places(rows: npt.NDArray[Any], times: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    instructions = rows["instructions"].astype(np.int64)
    places = np.searchsorted(instructions, times)
    if np.any(instructions[np.minimum(places, len(rows) - 1)] != times):
        raise MeasurementError("the record has times that no counter gave; count with perfsuite's own tool")
    return places


#: By processor, for whose machine there is a target. A C library comes along, so that its copies and comparisons count
#: the same everywhere; Valgrind knows no AVX-512, and no vectors of any length (SVE).
_TARGETS = {"x86-64-v3": "x86_64-linux-musl", "armv8.2-a+dotprod": "aarch64-linux-musl"}
_COMPILER = "zig"

#: Longest that a counted run may take, s: it is some fifty times slower than the processor.
_LIMIT_S = 3600.0


def own_processor() -> str:
    """Return the processor whose work is counted on this machine; x86-64's where there is none of it."""
    targets = _TARGETS.items()
    found = (name for name, target in targets if platform.machine() in find_target(target).machines)
    return next(found, next(iter(_TARGETS)))


def count_workload(
    workload: LlamaWorkload, llama: str | None, processor: str, cache_dir: Path, tell: Tell
) -> CountedWork:
    """Count one run of a workload, on one thread of a processor; another machine's is emulated.

    `llama` is a release of llama-cpp-python or a checkout of llama.cpp; None is the release that the suite requires.

    Raises PerfsuiteError: the build cannot be made, no work of the processor is counted, or the run fails.
    """
    if processor not in _TARGETS:
        raise MeasurementError(f"counting: no work of {processor} is counted; expected {' or '.join(_TARGETS)}")
    if workload.settings.lora_rank is not None or workload.draft is not None or workload.projector is not None:
        raise MeasurementError("counted work is that of a model by itself; leave out adapter, draft model and image")
    require("ziglang", "counting")
    target = find_target(_TARGETS[processor])
    order = BundleOrder(target=target, processor=target.processor(processor), compiler=_COMPILER, llama=llama)
    tool = build_counting_tool(cache_dir, target.machines[0], tell)
    bundle = make_bundle(order, cache_dir, tell)
    model = materialize(workload.weights, cache_dir=cache_dir / "models")
    tell(f"counting {workload.prefix}")
    own = Engine(library_dir=bundle.folder, include_dirs=(), build_id=bundle.manifest.engine.build_id)
    plan = llama_plan(workload, own, gguf_path=model, cache_dir=cache_dir, n_threads=1)
    payload, rows = run_counted(plan, bundle.folder, tool, limit_s=_LIMIT_S)
    return CountedWork(
        model=workload.weights.name,
        model_digest=file_digest(model),
        scenario=workload.scenario.name,
        settings=" ".join(f"{name}={value}" for name, value in workload_settings(workload).items()),
        llama=bundle.manifest.llama,
        llama_digest=bundle.manifest.llama_digest,
        bundle=bundle.manifest.digest,
        compiler=bundle.manifest.compiler,
        processor=processor,
        rows=counts_of(EngineRecord.from_plain(payload["engine"]), rows),
    )
