"""The eBPF recorder by what it records and how: each choice is a recorder of its own where costs are compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfsuite.measure.plan import EbpfPlan
from perfsuite.records.trace_levels import TraceLevel

_PLAIN = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR
_STRUCTURE = _PLAIN | TraceLevel.STRUCTURE

#: What each recorder's name stands for; with ``+perf`` behind it the events go through the perf buffer.
EBPF_LEVELS: Mapping[str, TraceLevel] = {
    "ebpf-token": TraceLevel.TOKEN,
    "ebpf-graph": TraceLevel.TOKEN | TraceLevel.GRAPH,
    "ebpf-operator": _PLAIN,
    "ebpf-structure": _STRUCTURE,
    "ebpf-counters": _STRUCTURE | TraceLevel.COUNTERS,
    "ebpf-ends": _STRUCTURE | TraceLevel.ENDS,
    "ebpf-threads": _STRUCTURE | TraceLevel.THREADS,
    "ebpf-experts": _STRUCTURE | TraceLevel.EXPERTS,
    "ebpf-all": ~TraceLevel(0),
}

_PERF = "+perf"

#: All names.
EBPF_RECORDERS = tuple(name + suffix for suffix in ("", _PERF) for name in EBPF_LEVELS)


def ebpf_plan(name: str, helper: Path, log_path: Path) -> EbpfPlan:
    """Return the plan of the recorder of that name, which is one of `EBPF_RECORDERS`."""
    levels = EBPF_LEVELS[name.removesuffix(_PERF)]
    buffer = "perf" if name.endswith(_PERF) else "ring"
    return EbpfPlan(helper=str(helper), log_path=str(log_path), levels=int(levels), buffer=buffer)
