"""Samples a worker's memory from its parent while it runs.

Sampling takes time on a processor that the worker wants, so memory is measured in a process of its own and never in a
replicate that is timed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.memory.need import memory_need
from perfsuite.measure.engine_memory import engine_cpu_features
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.resident import resident_sample
from perfsuite.measure.vram import Vram, process_vram
from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline

#: Time between two samples.
INTERVAL_S = 0.02
#: Time between two questions about a GPU's memory, which may start a program.
VRAM_INTERVAL_S = 0.5

_PROC = Path("/proc")


@dataclass(slots=True)
class MemoryWatch:
    """What was seen of one process; filled while `watch_memory` is open."""

    samples: list[MemorySample] = field(default_factory=list)
    #: The kernel's high-water mark at each sample.
    marks: list[int] = field(default_factory=list)
    vram: Vram = field(default_factory=lambda: Vram(n_bytes=None, missing="the run puts no layer on a GPU"))


@contextmanager
def watch_memory(
    pid: int, watch: MemoryWatch, *, asks_vram: bool = False, proc: Path = _PROC, interval_s: float = INTERVAL_S
) -> Iterator[MemoryWatch]:
    """Sample a process every `interval_s` until the block ends or the process is gone."""
    ended = threading.Event()
    threads = [threading.Thread(target=_sample_until, args=(ended, pid, watch, proc, interval_s), daemon=True)]
    if asks_vram:
        threads.append(threading.Thread(target=_ask_until, args=(ended, pid, watch), daemon=True))
    for thread in threads:
        thread.start()
    try:
        yield watch
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def measure_timeline(plan: LlamaPlan) -> tuple[MemoryTimeline, Vram]:
    """Run one worker without a recorder and return its memory over time, and what its GPU held at the most.

    Raises `MeasurementError` where the worker failed, or it ended before it was seen once.
    """
    watch = MemoryWatch()
    on_gpu = plan.n_gpu_layers > 0
    payload = run_worker(replace(plan, recorder="none"), observe=lambda pid: watch_memory(pid, watch, asks_vram=on_gpu))
    base = MemorySample.from_plain(payload["base_memory"])
    return timeline_of(watch, EngineRecord.from_plain(payload["engine"]).spans, base), watch.vram


def measure_memory(workload: LlamaWorkload, plan: LlamaPlan) -> MemoryRecord:
    """Run one worker of a workload and return its memory beside what is predicted for this engine and processor.

    Raises `MeasurementError` where the worker failed; `ArchitectureError` where nothing can be predicted for this
    architecture or these settings.
    """
    need = memory_need(workload, cpu_features=engine_cpu_features(plan))
    timeline, vram = measure_timeline(plan)
    return MemoryRecord(
        weights=workload.weights.name,
        scenario=workload.scenario.name,
        need=need,
        timeline=timeline,
        vram_bytes=vram.n_bytes,
        vram_missing=vram.missing,
    )


def timeline_of(watch: MemoryWatch, spans: tuple[Span, ...], base: MemorySample) -> MemoryTimeline:
    """Cut what was seen by the phases of the worker's own record, at the end of which the timeline ends.

    `base` is what the worker had when it was about to open the model, by its own account.

    Raises `MeasurementError` where no sample was taken in time.
    """
    load = next(span for span in spans if span.phase is Phase.LOAD)
    last_ns = max(span.end_ns for span in spans)
    seen = [(sample, mark) for sample, mark in zip(watch.samples, watch.marks, strict=True) if sample.at_ns <= last_ns]
    if not seen:
        raise MeasurementError("memory: the process was not seen before its end; use a longer scenario")
    samples = tuple(sample for sample, _ in seen)
    return MemoryTimeline(
        samples=samples,
        peak_rss_bytes=max(*(mark for _, mark in seen), *(sample.rss_bytes for sample in samples)),
        base=base,
        phases=tuple(_phases(samples, spans, load)),
    )


def _phases(samples: tuple[MemorySample, ...], spans: tuple[Span, ...], load: Span) -> Iterator[MemoryPhase]:
    """Yield loading, what lies between it and the first span of the run, the prompt, and the generation as a whole."""
    yield _phase("load", load.start_ns, load.end_ns, samples)
    run = [span for span in spans if span.phase is not Phase.LOAD]
    if run:
        yield _phase("warm_up", load.end_ns, min(span.start_ns for span in run), samples)
    for phase in (Phase.PREFILL, Phase.DECODE):
        if own := [span for span in run if span.phase is phase]:
            first_ns, last_ns = min(span.start_ns for span in own), max(span.end_ns for span in own)
            yield _phase(phase.value, first_ns, last_ns, samples)


def _phase(name: str, start_ns: int, end_ns: int, samples: tuple[MemorySample, ...]) -> MemoryPhase:
    own = (sample.rss_bytes for sample in samples if start_ns <= sample.at_ns <= end_ns)
    return MemoryPhase(name=name, start_ns=start_ns, end_ns=end_ns, peak_bytes=max(own, default=None))


def _sample_until(ended: threading.Event, pid: int, watch: MemoryWatch, proc: Path, interval_s: float) -> None:
    while not ended.is_set():
        seen = resident_sample(proc / str(pid) / "status")
        if seen is None:
            return
        watch.samples.append(seen[0])
        watch.marks.append(seen[1])
        ended.wait(interval_s)


def _ask_until(ended: threading.Event, pid: int, watch: MemoryWatch) -> None:
    while not ended.is_set():
        seen = process_vram(pid)
        if watch.vram.n_bytes is None or (seen.n_bytes or 0) > watch.vram.n_bytes:
            watch.vram = seen
        ended.wait(VRAM_INTERVAL_S)
