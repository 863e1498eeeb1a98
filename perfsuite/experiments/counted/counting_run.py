"""Counts a workload on a build that is the same everywhere: pinned compiler, C library and processor."""

from __future__ import annotations

from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.engine_replicates import workload_settings
from perfsuite.extras import require
from perfsuite.measure.bundle.making import BundleOrder, make_bundle
from perfsuite.measure.bundle.steps import Tell
from perfsuite.measure.bundle.targets import find_target
from perfsuite.measure.counting import build_counting_tool, run_counted
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.records.counts import CountedWork
from perfsuite.records.events import EngineRecord
from perfsuite.records.file_digest import file_digest
from perfsuite.trace.counts import counts_of
from perfsuite.workload.weights import materialize

#: A C library comes along, so that its copies and comparisons count the same everywhere; Valgrind knows no AVX-512.
_TARGET, _PROCESSOR, _COMPILER = "x86_64-linux-musl", "x86-64-v3", "zig"

#: Longest that a counted run may take, s: it is some fifty times slower than the processor.
_LIMIT_S = 3600.0


def count_workload(workload: LlamaWorkload, llama: str | None, cache_dir: Path, tell: Tell) -> CountedWork:
    """Count one run of a workload, on one thread of the processor.

    `llama` is a release of llama-cpp-python or a checkout of llama.cpp; None is the release that the suite requires.

    Raises PerfsuiteError: the build cannot be made, Valgrind is missing, or the run fails.
    """
    if workload.settings.lora_rank is not None or workload.draft is not None or workload.projector is not None:
        raise MeasurementError("counted work is that of a model by itself; leave out adapter, draft model and image")
    require("ziglang", "counting")
    target = find_target(_TARGET)
    order = BundleOrder(target=target, processor=target.processor(_PROCESSOR), compiler=_COMPILER, llama=llama)
    tool = build_counting_tool(cache_dir)
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
        processor=_PROCESSOR,
        rows=counts_of(EngineRecord.from_plain(payload["engine"]), rows),
    )
