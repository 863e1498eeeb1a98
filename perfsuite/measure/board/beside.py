"""What is done to a worker, and seen of it, by the process beside it on its board."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import Observe
from perfsuite.measure.plan import LlamaPlan, Plan

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


@contextmanager
def done_beside(plan: Plan, beside: Beside | None, others: Observe | None) -> Iterator[tuple[Observe | None, _Told]]:
    """Give what is to observe the worker of a plan, `others` included, and what afterwards tells what was seen.

    Raises `MeasurementError` where the board cannot limit memory, or the run needs more than it may have.
    """
    told: dict[str, Any] = {}
    if beside is None or beside == Beside():
        yield others, told.copy
        return
    from perfsuite.measure import memory_limit  # here: a worker does not wait for an import

    if beside.memory_limit_bytes is not None:
        if obstacle := memory_limit.memory_limit_obstacle():
            raise MeasurementError(obstacle)
        if isinstance(plan, LlamaPlan):  # the weights leave the page cache, so that they count as the worker's own
            memory_limit.drop_file_pages(Path(plan.gguf_path))

    @contextmanager
    def observe(pid: int) -> Iterator[None]:
        with ExitStack() as stack:
            if others is not None:
                stack.enter_context(others(pid))
            if beside.watches_memory:
                stack.enter_context(_memory_watched(pid, beside.asks_vram, told))
            if beside.memory_limit_bytes is not None:
                stack.enter_context(_memory_limited(pid, beside.memory_limit_bytes, told))
            yield

    yield observe, told.copy


_Told = Callable[[], dict[str, Any]]


@contextmanager
def _memory_watched(pid: int, asks_vram: bool, told: dict[str, Any]) -> Iterator[None]:
    from perfsuite.measure.memory_timeline import MemoryWatch, watch_memory  # loaded already

    with watch_memory(pid, MemoryWatch(), asks_vram=asks_vram) as watch:
        yield
    told[MEMORY] = watch.to_plain()


@contextmanager
def _memory_limited(pid: int, limit_bytes: int, told: dict[str, Any]) -> Iterator[None]:
    from perfsuite.measure.memory_limit import limited_memory, stopped_by_limit  # loaded already

    with limited_memory(pid, limit_bytes) as group:
        try:
            yield
        except MeasurementError:
            if not group.n_killed:
                raise
            raise stopped_by_limit(limit_bytes) from None
        told[N_REFAULTS] = group.n_refaults
