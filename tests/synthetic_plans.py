"""A plan of a run of the engine, and the competition that its worker had."""

from __future__ import annotations

from perfsuite.measure.plan import LlamaPlan

PLAN = LlamaPlan(
    gguf_path="x.gguf",
    library_dir="/lib",
    engine_build_id="1",
    cache_dir="/cache",
    n_threads=2,
    n_prompt=64,
    n_gen=24,
)
#: The competition in a worker that had none, and in one that waited half of its time.
QUIET = {"wall_ns": 10**9, "running_ns": 10**9, "waiting_ns": 0, "steal_ratio": 0.0, "others_ratio": 0.0}
CONTENDED = {**QUIET, "waiting_ns": 10**9, "others_ratio": 0.5}
