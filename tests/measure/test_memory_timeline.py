"""Memory of real worker processes, and timelines of made-up ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import llama_workload
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.memory_timeline import MemoryWatch, measure_memory, timeline_of, watch_memory
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.vram import Vram
from perfsuite.records.events import Phase, Span
from perfsuite.records.memory_timeline import MemorySample
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

MIB = 2**20


def sample(at_ns: int, rss_bytes: int) -> MemorySample:
    """A sample of anonymous memory only."""
    return MemorySample(at_ns=at_ns, anonymous_bytes=rss_bytes, file_bytes=0, shared_bytes=0)


def span(phase: Phase, start_ns: int, end_ns: int) -> Span:
    """A span of one token."""
    return Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=start_ns, end_ns=end_ns)


SPANS = (
    span(Phase.LOAD, 10, 20),
    span(Phase.PREFILL, 30, 40),
    span(Phase.DECODE, 41, 45),
    span(Phase.COPY, 45, 46),
    span(Phase.DECODE, 47, 50),
)
BASE = sample(9, 7)


def watched(*times: int) -> MemoryWatch:
    """A watch that saw ten bytes for each nanosecond, and a high-water mark one above."""
    return MemoryWatch(samples=[sample(at, 10 * at) for at in times], marks=[10 * at + 1 for at in times])


def test_the_timeline_is_cut_by_the_workers_phases() -> None:
    """What lies between loading and the run is the warm-up, and the generation is one phase from its first token."""
    timeline = timeline_of(watched(5, 15, 25, 35, 42, 46, 49), SPANS, BASE)
    assert [(each.name, each.start_ns, each.end_ns, each.peak_bytes) for each in timeline.phases] == [
        ("load", 10, 20, 150),
        ("warm_up", 20, 30, 250),
        ("prefill", 30, 40, 350),
        ("decode", 41, 50, 490),
    ]
    assert timeline.base == BASE


def test_what_follows_the_run_is_left_out() -> None:
    """The worker runs its sentinels afterwards, whose arrays are no memory of the workload."""
    timeline = timeline_of(watched(5, 49, 60), SPANS, BASE)
    assert [each.at_ns for each in timeline.samples] == [5, 49]
    assert timeline.peak_rss_bytes == 491


def test_a_phase_that_no_sample_saw_has_no_peak() -> None:
    """Not seen is not 0."""
    assert timeline_of(watched(15), SPANS, BASE).phases[2].peak_bytes is None


def test_a_process_that_was_never_seen_is_refused() -> None:
    """There is nothing to tell."""
    with pytest.raises(MeasurementError, match="was not seen"):
        timeline_of(watched(60), SPANS, BASE)


def test_a_process_is_sampled_while_it_runs() -> None:
    """A child that takes 40 MiB after a while is seen before and after; time goes on from sample to sample."""
    script = "import time; time.sleep(0.2); held = bytearray(b'x' * (40 << 20)); time.sleep(0.3)"
    child = subprocess.Popen([sys.executable, "-c", script])
    with watch_memory(child.pid, MemoryWatch(), interval_s=0.01) as watch:
        child.wait()
    times = [each.at_ns for each in watch.samples]
    sizes = [each.anonymous_bytes for each in watch.samples]
    assert times == sorted(times)
    assert max(sizes) - min(sizes) > 40 * MIB
    assert max(watch.marks) >= max(each.rss_bytes for each in watch.samples) - MIB


def test_a_process_that_is_gone_ends_the_watch(tmp_path: Path) -> None:
    """Nothing is seen, and nobody waits."""
    started = time.monotonic()
    with watch_memory(1, MemoryWatch(), proc=tmp_path, interval_s=60.0) as watch:
        pass
    assert watch.samples == []
    assert time.monotonic() - started < 10.0


def test_vram_is_kept_at_its_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all answers the largest stays, and a later silence does not undo it."""
    answers = iter([Vram(n_bytes=None, missing="not yet"), Vram(n_bytes=5), Vram(n_bytes=9), Vram(n_bytes=2)])
    last = Vram(n_bytes=None, missing="gone")
    monkeypatch.setattr("perfsuite.measure.memory_timeline.VRAM_INTERVAL_S", 0.001)
    monkeypatch.setattr("perfsuite.measure.memory_timeline.process_vram", lambda pid: next(answers, last))
    with watch_memory(os.getpid(), MemoryWatch(), asks_vram=True) as watch:
        time.sleep(0.1)
    assert watch.vram == Vram(n_bytes=9)


@pytest.mark.long
def test_a_run_takes_what_is_predicted(engine: Engine, small_plan: LlamaPlan, tmp_path: Path) -> None:
    """Mapped weights within 5 MiB, the rest within 10 MiB: libraries' pages and the engine's own bookkeeping."""
    weights = resolve(small_plan.gguf_path, cache_dir=tmp_path)
    workload = llama_workload(weights, find_scenario("p200-g16"))
    plan = llama_plan(
        workload, engine, gguf_path=Path(small_plan.gguf_path), cache_dir=Path(small_plan.cache_dir), n_threads=1
    )
    record = measure_memory(workload, plan)
    assert [each.name for each in record.timeline.phases] == ["load", "warm_up", "prefill", "decode"]
    assert record.timeline.base.rss_bytes < record.timeline.peak_rss_bytes
    assert 0 <= record.file.unexplained_bytes < 5 * MIB
    assert 0 <= record.anonymous.unexplained_bytes < 10 * MIB
    assert abs(record.peak.unexplained_bytes) < 15 * MIB
    assert record.vram_bytes is None
    assert "no layer on a GPU" in record.vram_missing
