"""Memory of real worker processes, and timelines of made-up ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.memory_timeline import (
    MemoryWatch,
    NvidiaUse,
    Vram,
    drm_vram,
    measure_memory,
    sample_of_status,
    timeline_of,
)
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase, Span
from perfsuite.records.memory_timeline import MemorySample
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from .conftest import wait_until, write_script

STATUS = "Name:\tx\nVmHWM:\t  400 kB\nRssAnon:\t  100 kB\nRssFile:\t  20 kB\nRssShmem:\t  3 kB\n"


def test_sizes_are_in_bytes() -> None:
    """A zombie has none."""
    seen = sample_of_status(STATUS, 5)
    assert seen is not None
    sample, mark = seen
    assert (sample.at_ns, sample.anonymous_bytes, sample.file_bytes, sample.shared_bytes) == (5, 102400, 20480, 3072)
    assert mark == 409600
    assert sample_of_status("Name:\tx\nState:\tZ (zombie)\n", 5) is None


PID = 4242
MIB = 2**20


def descriptor(proc: Path, number: int, content: str) -> None:
    folder = proc / str(PID) / "fdinfo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(number)).write_text(content)


def amd(client: int = 1, pdev: str = "0000:03:00.0", **regions: str) -> str:
    """What a descriptor of an AMD device tells; underscores stand for dashes."""
    told = "".join(f"{name.replace('_', '-')}:\t{value}\n" for name, value in regions.items())
    return f"pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t{pdev}\n{told}"


@pytest.mark.parametrize(
    ("descriptors", "n_bytes"),
    [
        ([amd(drm_memory_vram="2048 KiB")] * 2, 2 * MIB),
        (
            [
                amd(client=1, drm_memory_vram="1 MiB"),
                amd(client=2, drm_memory_vram="2 MiB"),
                amd(client=1, pdev="0000:04:00.0", drm_memory_vram="4 MiB"),
            ],
            7 * MIB,
        ),
        ([amd(drm_total_vram0="64 MiB", drm_resident_vram0="3 MiB", drm_memory_vram0="5 MiB")], 3 * MIB),
        ([amd(drm_resident_vram0="1 MiB", drm_resident_vram1="4096", drm_resident_gtt="9 MiB")], MIB + 4096),
    ],
    ids=["one client once", "clients and devices", "resident before total", "regions of the device"],
)
def test_the_memory_of_clients_is_summed(tmp_path: Path, descriptors: list[str], n_bytes: int) -> None:
    """A client is known by its device and id; what is swapped out, or the system's, is none; a bare number is bytes."""
    for number, content in enumerate(descriptors):
        descriptor(tmp_path, number, content)
    assert drm_vram(PID, proc=tmp_path).n_bytes == n_bytes


def test_what_is_not_known_has_a_reason(tmp_path: Path) -> None:
    """No process, no device, and a GPU that shares the system's memory: none of it is 0."""
    assert "fdinfo: No such file" in drm_vram(PID, proc=tmp_path).missing
    nvidia = NvidiaUse(program="no-such-program")
    assert nvidia.of(PID).missing == "nvidia-smi is not asked on a board"
    nvidia.ask()
    assert nvidia.of(PID).missing == "nvidia-smi is not there"
    descriptor(tmp_path, 0, "pos:\t0\nflags:\t02\n")
    assert drm_vram(PID, proc=tmp_path) == Vram(n_bytes=None, missing="the process has no DRM device open")
    descriptor(tmp_path, 5, "drm-driver:\tpanfrost\ndrm-client-id:\t3\ndrm-total-memory:\t8 MiB\n")
    seen = drm_vram(PID, proc=tmp_path)
    assert seen.n_bytes is None
    assert "panfrost" in seen.missing


@pytest.mark.parametrize(
    ("script", "n_bytes", "reason"),
    [
        (f"echo '{PID}, 100'; echo '7, 999'; echo '{PID}, 28'", 128 * MIB, ""),
        ("exit 9", None, "nvidia-smi returned 9"),
        ("echo '7, 999'", None, "does not list the process"),
        (f"echo '{PID}, [N/A]'", None, "tells no memory"),
    ],
)
def test_nvidia_tells_mib_of_each_gpu(tmp_path: Path, script: str, n_bytes: int | None, reason: str) -> None:
    nvidia = NvidiaUse(program=str(write_script(tmp_path / "smi", script)))
    nvidia.ask()
    assert nvidia.of(PID).n_bytes == n_bytes
    assert reason in nvidia.of(PID).missing


def test_what_nvidia_tells_is_kept_at_its_most(tmp_path: Path) -> None:
    """It is asked again and again while a worker runs."""
    program = write_script(tmp_path / "smi", f"echo '{PID}, 5'")
    nvidia = NvidiaUse(program=str(program))
    with nvidia.watched():
        assert wait_until(lambda: nvidia.of(PID).n_bytes == 5 * MIB)
    for used in (9, 2):
        write_script(program, f"echo '{PID}, {used}'")
        nvidia.ask()
    assert nvidia.of(PID).n_bytes == 9 * MIB


def sample(at_ns: int, rss_bytes: int) -> MemorySample:
    return MemorySample(at_ns=at_ns, anonymous_bytes=rss_bytes, file_bytes=0, shared_bytes=0)


def span(phase: Phase, start_ns: int, end_ns: int) -> Span:
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
    assert timeline.phases[2].peak_bytes is None  # no sample saw it
    with pytest.raises(MeasurementError, match="was not seen"):
        timeline_of(watched(60), SPANS, BASE)


@pytest.mark.long
def test_a_run_takes_what_is_predicted(engine: Engine, small_plan: LlamaPlan, tmp_path: Path) -> None:
    """Mapped weights within 5 MiB, the rest within 10 MiB: libraries' pages and the engine's own bookkeeping."""
    weights = resolve(small_plan.gguf_path, cache_dir=tmp_path)
    workload = llama_workload(weights, find_scenario("p200-g16"))
    plan = llama_plan(
        workload, engine, gguf_path=Path(small_plan.gguf_path), cache_dir=Path(small_plan.cache_dir), n_threads=1
    )
    record = measure_memory(workload, plan, LocalBoard(cache_dir=Path(plan.cache_dir)))
    assert [each.name for each in record.timeline.phases] == ["load", "warm_up", "prefill", "decode"]
    assert record.timeline.base.rss_bytes < record.timeline.peak_rss_bytes
    assert 0 <= record.file.unexplained_bytes < 5 * MIB
    assert 0 <= record.anonymous.unexplained_bytes < 10 * MIB
    assert abs(record.peak.unexplained_bytes) < 15 * MIB
    assert record.vram_bytes is None
    assert "no layer on a GPU" in record.vram_missing
