"""What the program on a board does beside a worker, and sees of it: asked for here, and computed here.

It answers with lines of ``/proc/PID/status``, files of DRM devices and counters of a control group, as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.mirror import Mirror, mirror
from perfsuite.measure.plan import LlamaPlan, Plan

if TYPE_CHECKING:
    from perfsuite.measure.memory_limit import MemoryGroup
    from perfsuite.measure.memory_timeline import MemoryWatch, NvidiaUse, Vram


#: Where a payload has what was seen.
MEMORY = "memory"
N_REFAULTS = "n_refaults"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is asked for beside a run of llama.cpp."""

    #: Whether its memory is sampled, and what its GPU holds of it is asked for; a `MemoryWatch` comes in the payload.
    watches_memory: bool = False
    asks_vram: bool = False
    #: The most memory that it may have, page cache included; pages that were read again come in the payload.
    memory_limit_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBeside:
    """What is asked of the program beside one worker, and what is made of its answer."""

    request: Mapping[str, Any]
    #: None where memory is not limited.
    limit_bytes: int | None = None
    is_v2: bool = False
    #: What NVIDIA's driver says beside the worker; None where no GPU's memory is asked for.
    nvidia: NvidiaUse | None = None

    def watched_here(self, *, is_here: bool) -> AbstractContextManager[object]:
        """Ask NVIDIA's driver while the context lasts, where it is this machine's."""
        return self.nvidia.watched() if is_here and self.nvidia is not None else nullcontext()

    def payload(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the worker's payload gets."""
        found: dict[str, Any] = {}
        if "memory" in self.request:
            found[MEMORY] = _watch(told["memory"], self.nvidia, int(told["pid"])).to_plain()
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


def asked_beside(
    plan: Plan, beside: Beside, files_of: Callable[[tuple[str, ...]], AbstractContextManager[Mirror]]
) -> AskedBeside:
    """Return what a run asks for; `files_of` gives the files of the board that match patterns.

    Raises `MeasurementError` where the board has no control groups, or the limit is too low.
    """
    request: dict[str, Any] = {}
    nvidia = None
    if beside.watches_memory:
        from perfsuite.measure.memory_timeline import FIELDS, INTERVAL_S, VRAM_INTERVAL_S, NvidiaUse  # few are watched

        request["memory"] = {"period_s": INTERVAL_S, "fields": list(FIELDS)}
        if beside.asks_vram:
            request["memory"]["device_period_s"], nvidia = VRAM_INTERVAL_S, NvidiaUse()
    if beside.memory_limit_bytes is None:
        return AskedBeside(request=request, nvidia=nvidia)
    from perfsuite.measure import memory_limit  # as above

    memory_limit.check_limit(beside.memory_limit_bytes)
    with files_of(memory_limit.GROUP_FILES) as board:
        parents, is_v2 = memory_limit.possible_parents("self", board.root)
    group = memory_limit.MemoryGroup(path=parents[0], is_v2=is_v2)
    request["limit"] = {
        "parents": [str(each) for each in parents],
        "limits": [list(each) for each in group.limits(beside.memory_limit_bytes)],
        "reads": list(group.counted_names),
        # The weights leave the page cache, so that they count as the worker's own.
        **({"drops": plan.gguf_path} if isinstance(plan, LlamaPlan) else {}),
    }
    return AskedBeside(request=request, nvidia=nvidia, limit_bytes=beside.memory_limit_bytes, is_v2=is_v2)


def _watch(told: Mapping[str, Any], nvidia: NvidiaUse | None, pid: int) -> MemoryWatch:
    """Make of looks what the process came to."""
    from perfsuite.measure.memory_timeline import MemoryWatch, Vram, sample_of_status  # as above

    watch = MemoryWatch()
    for at_ns, lines in told["status"]:
        if (seen := sample_of_status(lines.decode("ascii", "replace"), int(at_ns))) is not None:
            watch.samples.append(seen[0])
            watch.marks.append(seen[1])
    if nvidia is not None:
        of_nvidia = nvidia.of(pid)
        watch.vram = Vram(n_bytes=of_nvidia.n_bytes, missing=f"{told['refusal']}; {of_nvidia.missing}")
        for files in told["devices"]:
            watch.keep_most(_vram(files, of_nvidia))
    return watch


def _vram(files: list[tuple[str, bytes]], nvidia: Vram) -> Vram:
    from perfsuite.measure.memory_timeline import Vram, drm_vram  # as above

    with mirror() as board:
        (board.root / "1" / "fdinfo").mkdir(parents=True)
        for name, content in files:
            board.write(str(Path("1", "fdinfo", name)), content)
        seen = drm_vram(1, proc=board.root)
    return seen if seen.n_bytes is not None else Vram(n_bytes=None, missing=f"{seen.missing}; {nvidia.missing}")
