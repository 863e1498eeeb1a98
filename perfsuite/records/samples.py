"""The samples of a case: one value from each replicate."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSamples:
    """What the replicates of a run say about one case."""

    case_id: str
    #: One value a valid replicate, ns; repetitions inside a process are collapsed to their median.
    samples_ns: tuple[int, ...]
    #: Why no sample can be trusted; empty when they can.
    problems: tuple[str, ...] = field(default=())
