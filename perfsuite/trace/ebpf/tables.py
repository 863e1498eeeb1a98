"""What the events of an eBPF recording refer to, and what its probes cost: the small tables at the edge of a log."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfsuite.records.bpf_log import BpfKind, BpfLog
from perfsuite.records.bpf_log_file import PROBE_TAIL, terminated
from perfsuite.records.engine_trace import NOTHING, Events, ProbeCost, TracedThread
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.operators import Operators

#: ``ggml_backend_*_guid`` of ggml 0.25.3, ``ggml/src/ggml-*/``. BLAS and OpenVINO share one, and are both left out.
_NAMES = {
    "aa67c74396e6a38ae3afea9236bcfc89": "CPU",
    "dee070a2734e4dbcb0c74fd46d4e90fe": "OpenCL",
    "2cdde81c65b365736a1288611cc9dc25": "CUDA",
    "b8f74f86403ce10291c8dde9023fc02b": "Vulkan",
    "81a18b1e71ec79ed2b85dc8a619830e6": "Metal",
    "99685b6cd2833d24253672e15b0e1403": "RPC",
    "7b57dcafde121d491111111111111111": "Hexagon",
    "5805138fcd3a619de7cd98a903fd7c53": "SYCL",
    "a194afacbd4f4734be1a9e711f9eed64": "CANN",
    "67c7a4b178744f519d65446de41b829a": "WebGPU",
}


def backend_name(guid: bytes | memoryview) -> str:
    """Return a backend's name, or its guid where the name is not known."""
    digits = bytes(guid).hex()
    return _NAMES.get(digits, f"guid:{digits}")


#: Behind all threads that compute.
_LAST = 1 << 16


def threads_of(log: BpfLog, events: Events, evaluations: Intervals, operators: Operators) -> tuple[TracedThread, ...]:
    """Return the threads whose ids events have: first those that compute, by their number, then the others."""
    numbers = {int(tid): 0 for tid in np.unique(evaluations.tid)}
    tids, places = np.unique(operators.tid, return_index=True)
    numbers |= dict(zip(tids.tolist(), operators.thread[places].tolist(), strict=True))
    named = [int(tid) for tid in np.unique(events["thread"]) if tid != NOTHING]
    named.sort(key=lambda tid: (numbers.get(tid, _LAST), tid))
    names = _thread_names(log)
    return tuple(TracedThread(tid=tid, name=names.get(tid, "")) for tid in named)


def number_threads(events: Events, threads: tuple[TracedThread, ...]) -> None:
    """Put each thread's place where its id was."""
    tids = np.array([each.tid for each in threads], np.int64)
    order = np.argsort(tids)
    known = events["thread"] != NOTHING
    events["thread"][known] = order[np.searchsorted(tids[order], events["thread"][known])]


def probe_costs_of(log: BpfLog) -> Iterator[ProbeCost]:
    """Yield what the kernel says that each program cost."""
    for position in log.positions(BpfKind.PROBE):
        n_runs, name = PROBE_TAIL.unpack_from(log.tail(position))
        run_time_ns = int(log.records["subject"][position])
        yield ProbeCost(name=terminated(name), n_runs=n_runs, run_time_ns=run_time_ns)


def _thread_names(log: BpfLog) -> dict[int, str]:
    positions = log.positions(BpfKind.THREAD_NAME)
    tids = log.records["tid"][positions].tolist()
    return {tid: terminated(log.tail(position)) for tid, position in zip(tids, positions, strict=True)}
