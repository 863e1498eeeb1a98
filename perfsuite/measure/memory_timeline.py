"""Samples a worker's memory from its parent while it runs, as ``/proc/PID/status`` has it.

Sampling takes time on a processor that the worker wants, so memory is measured in a process of its own and never in a
replicate that is timed. What it holds of a GPU's memory the kernel's DRM drivers report for each open device in
``/proc/PID/fdinfo``, and NVIDIA's own driver through ``nvidia-smi``.

*Source*: ``Documentation/gpu/drm-usage-stats.rst`` of Linux; ``nvidia-smi --help-query-compute-apps``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.memory.need import memory_need
from perfsuite.measure.board.beside import MEMORY, Beside
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase, Span
from perfsuite.records.memory_timeline import MemoryPhase, MemorySample, MemoryTimeline

_KIB = 1024
_SPLIT = ("RssAnon", "RssFile", "RssShmem")
_HIGH_WATER = "VmHWM"
#: All that is read of a status.
FIELDS = (*_SPLIT, _HIGH_WATER)


def sample_of_status(text: str, at_ns: int) -> tuple[MemorySample, int] | None:
    """Return what is resident and the high-water mark in bytes, by ``/proc/PID/status``.

    None where the kernel tells no such fields, as of a zombie or before Linux 4.5.
    """
    lines = text.splitlines()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    if any(name not in values for name in FIELDS):
        return None
    anonymous, file, shared, mark = (int(values[name].split()[0]) * _KIB for name in FIELDS)
    sample = MemorySample(at_ns=at_ns, anonymous_bytes=anonymous, file_bytes=file, shared_bytes=shared)
    return sample, mark


_PROC_ROOT = Path("/proc")
_MIB = 1024 * 1024
_UNITS = {"": 1, "KiB": 1024, "MiB": _MIB}

#: Regions of a device's own memory, as drivers name them: ``vram`` and ``vram0`` (amdgpu, xe), ``local0`` (i915).
_DEVICE_REGION = re.compile(r"(?:vram|local|lmem)\d*")
#: Keys that tell a region's use, the first that a driver has: ``drm-memory-`` is the old name of resident memory.
_KINDS = ("drm-resident-", "drm-memory-", "drm-total-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vram:
    """Bytes of GPU memory that a process holds, or why they are not known."""

    n_bytes: int | None
    missing: str = ""


def drm_vram(pid: int, *, proc: Path = _PROC_ROOT) -> Vram:
    """Sum the device memory of a process's DRM clients, each once however many descriptors it has."""
    folder = proc / str(pid) / "fdinfo"
    try:
        descriptors = sorted(folder.iterdir())
    except OSError as error:
        return Vram(n_bytes=None, missing=f"{folder}: {error.strerror}")
    clients = {
        (info.get("drm-pdev", info["drm-driver"]), info.get("drm-client-id", path.name)): info
        for path in descriptors
        if "drm-driver" in (info := _fields(path))
    }
    held = [size for info in clients.values() if (size := _device_bytes(info)) is not None]
    if not clients:
        return Vram(n_bytes=None, missing="the process has no DRM device open")
    if not held:
        drivers = ", ".join(sorted({info["drm-driver"] for info in clients.values()}))
        return Vram(n_bytes=None, missing=f"the driver tells no device memory of a process ({drivers})")
    return Vram(n_bytes=sum(held))


_QUERY = ("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
_NVIDIA_LIMIT_S = 10.0
#: Time between two questions, each of which starts a program.
_NVIDIA_INTERVAL_S = 0.5


@dataclass(slots=True, kw_only=True)
class NvidiaUse:
    """What each process has held at the most."""

    program: str = "nvidia-smi"
    #: By process; None where the driver lists it and does not tell.
    _most_bytes: dict[int, int | None] = field(default_factory=dict)
    #: Why nothing was said at all.
    _missing: str = "nvidia-smi is not asked on a board"

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Ask again and again, in a thread, while the context lasts."""
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                self.ask()
                ended.wait(_NVIDIA_INTERVAL_S)

        thread = threading.Thread(target=ask, name="nvidia-smi", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def ask(self) -> None:
        """Ask once."""
        program = shutil.which(self.program)
        if program is None:
            self._missing = "nvidia-smi is not there"
            return
        try:
            asked = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=_NVIDIA_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._missing = f"nvidia-smi gave no answer ({type(error).__name__})"
            return
        self._missing = f"nvidia-smi returned {asked.returncode}" if asked.returncode else ""
        now: dict[int, int | None] = {}
        for line in asked.stdout.splitlines() if not asked.returncode else ():
            pid, _, used = (part.strip() for part in line.partition(","))
            if pid.isdigit():
                held = int(used) * _MIB if used.isdigit() else None  # such as ``[N/A]``
                now[int(pid)] = (now.get(int(pid)) or 0) + held if held is not None else now.get(int(pid))
        for process, n_bytes in now.items():
            most = self._most_bytes.get(process)
            self._most_bytes[process] = n_bytes if most is None else max(most, n_bytes or 0)

    def of(self, pid: int) -> Vram:
        """Return what a process has held on all GPUs, or why that is not known."""
        if pid not in self._most_bytes:
            return Vram(n_bytes=None, missing=self._missing or "nvidia-smi does not list the process")
        most = self._most_bytes[pid]
        return Vram(n_bytes=most, missing="" if most is not None else "nvidia-smi tells no memory of the process")


def _fields(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:  # the descriptor was closed meanwhile
        return {}
    return {name.strip(): value.strip() for name, mark, value in (line.partition(":") for line in lines) if mark}


def _device_bytes(info: Mapping[str, str]) -> int | None:
    """Sum a client's regions of device memory, each by the first kind that the driver tells."""
    regions: dict[str, int] = {}
    for kind in _KINDS:
        for name, value in info.items():
            region = name.removeprefix(kind)
            size = _bytes(value)
            if name.startswith(kind) and _DEVICE_REGION.fullmatch(region) and size is not None:
                regions.setdefault(region, size)
    return sum(regions.values()) if regions else None


def _bytes(value: str) -> int | None:
    number, _, unit = value.partition(" ")
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else None


#: Time between two samples.
INTERVAL_S = 0.02
#: Time between two questions about a GPU's memory, which may start a program.
VRAM_INTERVAL_S = 0.5


@dataclass(slots=True)
class MemoryWatch:
    """What was seen of one process; what was seen while it ran."""

    samples: list[MemorySample] = field(default_factory=list)
    #: The kernel's high-water mark at each sample.
    marks: list[int] = field(default_factory=list)
    vram: Vram = field(default_factory=lambda: Vram(n_bytes=None, missing="the run puts no layer on a GPU"))

    def keep_most(self, seen: Vram) -> None:
        """Keep what a GPU held at the most."""
        if self.vram.n_bytes is None or (seen.n_bytes or 0) > self.vram.n_bytes:
            self.vram = seen

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name, samples as rows."""
        return {"samples": [each.to_plain() for each in self.samples], "marks": self.marks, "vram": asdict(self.vram)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> MemoryWatch:
        """Undo `to_plain`."""
        samples = [MemorySample.from_plain(each) for each in plain["samples"]]
        return cls(samples=samples, marks=list(plain["marks"]), vram=Vram(**plain["vram"]))


def measure_timeline(plan: LlamaPlan, board: Board) -> tuple[MemoryTimeline, Vram]:
    """Run one worker without a recorder and return its memory over time, and what its GPU held at the most.

    Raises `MeasurementError` where the worker failed, or it ended before it was seen once.
    """
    beside = Beside(watches_memory=True, asks_vram=plan.n_gpu_layers > 0)
    payload = board.run(replace(plan, recorder="none"), beside=beside)
    base, watch = MemorySample.from_plain(payload["base_memory"]), MemoryWatch.from_plain(payload[MEMORY])
    return timeline_of(watch, EngineRecord.from_plain(payload.get("engine")).spans, base), watch.vram


def measure_memory(workload: LlamaWorkload, plan: LlamaPlan, board: Board) -> MemoryRecord:
    """Run one worker of a workload and return its memory beside what is predicted for this engine and processor.

    Raises `MeasurementError` where the worker failed; `ArchitectureError` where nothing can be predicted for this
    architecture or these settings.
    """
    need = memory_need(workload, cpu_features=board.instruments.cpu_features(plan))
    timeline, vram = measure_timeline(plan, board)
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
    for phase in GRAPH_PHASES:
        if own := [span for span in run if span.phase is phase]:
            first_ns, last_ns = min(span.start_ns for span in own), max(span.end_ns for span in own)
            yield _phase(phase.value, first_ns, last_ns, samples)


def _phase(name: str, start_ns: int, end_ns: int, samples: tuple[MemorySample, ...]) -> MemoryPhase:
    own = (sample.rss_bytes for sample in samples if start_ns <= sample.at_ns <= end_ns)
    return MemoryPhase(name=name, start_ns=start_ns, end_ns=end_ns, peak_bytes=max(own, default=None))
