"""Who had a processor while one of the program's threads waited for it, as far as the program's own threads tell."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import EngineTrace, EventKind, Events, ThreadState, TracedThread


class Occupants:
    """The threads of a trace that ran, by processor."""

    def __init__(self, trace: EngineTrace) -> None:
        states = trace.of(EventKind.THREAD_STATE)
        running = states[states["value"] == ThreadState.RUNNING]
        self._threads = trace.threads
        self._by_cpu = {cpu: running[running["cpu"] == cpu] for cpu in np.unique(running["cpu"]).tolist() if cpu >= 0}

    def of(self, wait: np.void) -> TracedThread | None:
        """Return another thread of the program that ran on the processor that an event of a thread's state waits for.

        None where none did: the processor was another program's, or nobody knows.
        """
        running: Events | None = self._by_cpu.get(int(wait["cpu"]))
        if running is None:
            return None
        last = int(np.searchsorted(running["start_ns"], wait["end_ns"])) - 1
        while last >= 0 and running["end_ns"][last] > wait["start_ns"]:
            thread = int(running["thread"][last])
            if thread != wait["thread"]:
                return self._threads[thread]
            last -= 1
        return None
