"""Sums over the operators of two recordings of one run, and over those of each thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, Events

_Times = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class TimesAgreement:
    """What both recorders tell of the time of some operators, in sum."""

    #: A phase, or an operator as ``ggml_op_desc`` spells it; empty for all together.
    name: str
    n_operators: int = 0
    ebpf_ns: int = 0
    callback_ns: int = 0

    def add(self, n_operators: int, ebpf_ns: int, callback_ns: int) -> None:
        """Add operators."""
        self.n_operators += n_operators
        self.ebpf_ns += ebpf_ns
        self.callback_ns += callback_ns

    @property
    def ratio(self) -> float | None:
        """The eBPF recorder's over the callback recorder's; None where that is nothing."""
        return self.ebpf_ns / self.callback_ns if self.callback_ns else None


@dataclass(slots=True, kw_only=True)
class ThreadAccount:
    """How far the operators of one thread account for the graphs that it computed."""

    #: Position in the eBPF trace's threads.
    thread: int
    #: In operators, and behind each of them until the next operator of the graph begins or the graph ends.
    own_ns: int = 0
    wait_ns: int = 0
    #: From the first operator's begin to the graph's end, of all graphs compared.
    graph_ns: int = 0

    def add(self, operators: Events, graph: np.void, n_nodes: int) -> None:
        """Add what the thread did in one graph of so many nodes.

        The time behind an operator whose follower is missing counts for nothing.
        """
        known = operators[operators["end_ns"] != NOTHING]
        if not known.size:
            return
        begin_ns = int(known["start_ns"][0] if known["node"][0] == 0 else graph["start_ns"])
        next_ns = np.append(known["start_ns"][1:], graph["end_ns"])
        follows = np.append(np.diff(known["node"]) == 1, known["node"][-1] == n_nodes - 1)
        self.own_ns += int((known["end_ns"] - known["start_ns"]).sum())
        self.wait_ns += int(np.where(follows, next_ns - known["end_ns"], 0).sum())
        self.graph_ns += int(graph["end_ns"]) - begin_ns

    @property
    def accounted_ratio(self) -> float | None:
        """Own and waiting time over that of the graphs: less than 1 where operators are missing."""
        return (self.own_ns + self.wait_ns) / self.graph_ns if self.graph_ns else None


def durations_ns(operators: Events) -> _Times:
    """Return the time from each operator's predecessor's end to its own end; of the first from its start."""
    bounds = np.append(operators["start_ns"][:1], operators["end_ns"])
    durations: _Times = np.diff(bounds)
    return durations
