"""Counts a model's scenario on a build that is the same everywhere: pinned compiler, C library and processor."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.extras import require
from perfsuite.measure.bundle.making import BundleOrder, make_bundle
from perfsuite.measure.bundle.steps import Tell
from perfsuite.measure.bundle.targets import find_target
from perfsuite.measure.counting import build_counting_tool, run_counted
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.counts import CountedWork
from perfsuite.records.events import EngineRecord
from perfsuite.records.file_digest import file_digest
from perfsuite.trace.counts import counts_of
from perfsuite.workload.weights import materialize, resolve

#: A C library comes along, so that its copies and comparisons count the same everywhere; Valgrind knows no AVX-512.
_TARGET, _PROCESSOR, _COMPILER = "x86_64-linux-musl", "x86-64-v3", "zig"

#: Longest that a counted run may take, s: it is some fifty times slower than the processor.
_LIMIT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest:
    """What to count."""

    model: str = "smollm2-135m-l4-q8_0"
    n_prompt: int = 16
    n_gen: int = 4
    #: A release of llama-cpp-python or a checkout; None for the release that the suite requires.
    llama: str | None = None


def count(request: CountRequest, cache_dir: Path, tell: Tell) -> CountedWork:
    """Count one run of a model.

    Raises PerfsuiteError: the build cannot be made, Valgrind is missing, or the run fails.
    """
    require("ziglang", "counting")
    target = find_target(_TARGET)
    order = BundleOrder(target=target, processor=target.processor(_PROCESSOR), compiler=_COMPILER, llama=request.llama)
    tool = build_counting_tool(cache_dir)
    bundle = make_bundle(order, cache_dir, tell)
    weights = resolve(request.model, cache_dir=cache_dir / "models")
    model = materialize(weights, cache_dir=cache_dir / "models")
    tell(f"counting {weights.name}, {request.n_prompt} tokens of prompt and {request.n_gen} of decode")
    plan = LlamaPlan(
        gguf_path=str(model),
        library_dir="",
        engine_build_id="",
        cache_dir="",
        n_threads=1,
        n_prompt=request.n_prompt,
        n_gen=request.n_gen,
    )
    payload, rows = run_counted(plan, bundle.folder, tool, limit_s=_LIMIT_S)
    return CountedWork(
        model=weights.name,
        model_digest=file_digest(model),
        n_prompt=request.n_prompt,
        n_gen=request.n_gen,
        llama=bundle.manifest.llama,
        llama_digest=bundle.manifest.llama_digest,
        bundle=bundle.manifest.digest,
        compiler=bundle.manifest.compiler,
        processor=_PROCESSOR,
        rows=counts_of(EngineRecord.from_plain(payload["engine"]), rows),
    )
