"""What is done to a worker, and seen of it, by the process beside it on its board."""

from __future__ import annotations

from dataclasses import dataclass

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
