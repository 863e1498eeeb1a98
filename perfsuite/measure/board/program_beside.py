"""What the program on a board does beside a worker, and sees of it: asked for here, and computed here.

It answers with lines of ``/proc/PID/status``, files of DRM devices and counters of a control group, as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.beside import MEMORY, N_REFAULTS, Beside
from perfsuite.measure.board.mirror import Mirror, mirror
from perfsuite.measure.plan import LlamaPlan, Plan

if TYPE_CHECKING:
    from perfsuite.measure.memory_limit import MemoryGroup
    from perfsuite.measure.memory_timeline import MemoryWatch, Vram

_NO_NVIDIA = "nvidia-smi is not asked on a board"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBeside:
    """What is asked of the program beside one worker, and what is made of its answer."""

    request: Mapping[str, Any]
    #: None where memory is not limited.
    limit_bytes: int | None = None
    is_v2: bool = False

    def payload(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the worker's payload gets."""
        found: dict[str, Any] = {}
        if "memory" in self.request:
            found[MEMORY] = _watch(told["memory"], asks_vram="device_period_s" in self.request["memory"]).to_plain()
        if self.limit_bytes is not None:
            with mirror() as board:
                found[N_REFAULTS] = self._group(board, told).n_refaults
        return found

    def reason(self, told: Mapping[str, Any], error: MeasurementError) -> MeasurementError:
        """Return why the worker failed: the limit, where the kernel has killed it for that."""
        from perfsuite.measure.memory_limit import stopped_by_limit  # few runs are limited

        if self.limit_bytes is None or told.get("limit") is None:
            return error
        with mirror() as board:
            return stopped_by_limit(self.limit_bytes) if self._group(board, told).n_killed else error

    def _group(self, board: Mirror, told: Mapping[str, Any]) -> MemoryGroup:
        """Lay out what the group has counted, to be read as a group of this machine's is."""
        from perfsuite.measure.memory_limit import MemoryGroup  # as above

        for name, content in told["limit"]:
            board.write(name, content or b"")
        return MemoryGroup(path=board.root, is_v2=self.is_v2)


NOTHING_ASKED = AskedBeside(request={})


def asked_beside(plan: Plan, beside: Beside, snapshot: Callable[[Mirror, tuple[str, ...]], None]) -> AskedBeside:
    """Return what a run asks for; `snapshot` lays out files of the board.

    Raises `MeasurementError` where the board has no control groups, or the limit is too low.
    """
    request: dict[str, Any] = {}
    if beside.watches_memory:
        request["memory"] = _asked_memory(asks_vram=beside.asks_vram)
    if beside.memory_limit_bytes is None:
        return AskedBeside(request=request)
    from perfsuite.measure import memory_limit  # as above

    memory_limit.check_limit(beside.memory_limit_bytes)
    with mirror() as board:
        snapshot(board, memory_limit.GROUP_FILES)
        parents, is_v2 = memory_limit.possible_parents("self", board.root)
    group = memory_limit.MemoryGroup(path=parents[0], is_v2=is_v2)
    request["limit"] = {
        "parents": [str(each) for each in parents],
        "limits": [list(each) for each in group.limits(beside.memory_limit_bytes)],
        "reads": list(group.counted_names),
        # The weights leave the page cache, so that they count as the worker's own.
        **({"drops": plan.gguf_path} if isinstance(plan, LlamaPlan) else {}),
    }
    return AskedBeside(request=request, limit_bytes=beside.memory_limit_bytes, is_v2=is_v2)


def _asked_memory(*, asks_vram: bool) -> dict[str, Any]:
    from perfsuite.measure.memory_timeline import FIELDS, INTERVAL_S, VRAM_INTERVAL_S  # few runs are watched

    devices = {"device_period_s": VRAM_INTERVAL_S} if asks_vram else {}
    return {"period_s": INTERVAL_S, "fields": list(FIELDS), **devices}


def _watch(told: Mapping[str, Any], *, asks_vram: bool) -> MemoryWatch:
    """Make of looks what watching the process here would have given."""
    from perfsuite.measure.memory_timeline import MemoryWatch, Vram, sample_of_status  # as above

    watch = MemoryWatch()
    for at_ns, lines in told["status"]:
        if (seen := sample_of_status(lines.decode("ascii", "replace"), int(at_ns))) is not None:
            watch.samples.append(seen[0])
            watch.marks.append(seen[1])
    if asks_vram:
        watch.vram = Vram(n_bytes=None, missing=f"{told['refusal']}; {_NO_NVIDIA}")
        for files in told["devices"]:
            watch.keep_most(_vram(files))
    return watch


def _vram(files: list[tuple[str, bytes]]) -> Vram:
    from perfsuite.measure.memory_timeline import Vram, drm_vram  # as above

    with mirror() as board:
        (board.root / "1" / "fdinfo").mkdir(parents=True)
        for name, content in files:
            board.write(str(Path("1", "fdinfo", name)), content)
        seen = drm_vram(1, proc=board.root)
    return seen if seen.n_bytes is not None else Vram(n_bytes=None, missing=f"{seen.missing}; {_NO_NVIDIA}")
