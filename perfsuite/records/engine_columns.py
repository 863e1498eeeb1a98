"""What the suite's own recorders keep of each operator, as columns on the monotonic clock.

The fields are those of the native side's structs (native/include/perfsuite/recorder.h and ring.h), whose ticks are
nanoseconds here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.records.engine_trace import EXPERT_DTYPE, NOTHING, Experts, Ints, Times
from perfsuite.records.events import GRAPH_PHASES, RECORD, TODO, EngineRecord, TickClock

Rows = npt.NDArray[np.void]

#: `index` is 0 where a graph is launched, NOTHING where its first operator is entered, _NO_OPERATOR where a node ends
#: that computes nothing, anything else where an operator ends.
RING_DTYPE = np.dtype([("ns", "<i8"), ("graph", "<i4"), ("index", "<i4")])
_NO_OPERATOR = -2

#: One operator on one thread, of a fused pair the first; the end is the thread's last arrival at a barrier before its
#: next operator, without the waiting for other threads, and NOTHING where none was seen.
THREAD_DTYPE = np.dtype(
    [("start_ns", "<i8"), ("end_ns", "<i8"), ("graph", "<i4"), ("node", "<i4"), ("thread", "<i4"), ("reserved", "<i4")]
)

#: What one router chose: `n_used` ids from `first_id` on for each of so many tokens, the best first; 0 of `n_experts`
#: where the layer's number of experts is not known.
CHOICE_DTYPE = np.dtype(
    [("ns", "<i8"), ("first_id", "<i8")] + [(name, "<i4") for name in ("layer", "n_tokens", "n_used", "n_experts")]
)

#: From the call that gave the nodes of a graph to a backend to its return; a device's is before they are computed.
SPLIT_DTYPE = np.dtype([("launch_ns", "<i8"), ("return_ns", "<i8"), ("graph", "<i4"), ("backend", "<i4")])

#: What the last evaluation of a phase came to, the number of a prompt's or of a decode step's phase, at so many places.
N_OUTPUT_VALUES, PREFILL_ROW, DECODE_ROW = 64, 1, 2
OUTPUT_DTYPE = np.dtype([("phase", "<i4"), ("repetition", "<i4"), ("values", "<f4", (N_OUTPUT_VALUES,))])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluations:
    """Computations of graphs in the order of time, each with the ends of its timed nodes on thread 0."""

    graph: Ints
    launch_ns: Times
    #: When the first operator was entered; NOTHING without the entry hook.
    first_start_ns: Times
    #: Of all of them, one behind the other; those of evaluation i are from ``bounds[i]`` to ``bounds[i + 1]``. Each
    #: begins with the end of the node before it, the first with its entry or the launch.
    starts_ns: Times
    ends_ns: Times
    bounds: Ints

    def __len__(self) -> int:
        return int(self.graph.size)

    @property
    def n_ends(self) -> Ints:
        return np.diff(self.bounds)

    @property
    def last_ns(self) -> Times:
        """When the last operator of each ended; NOTHING where none did."""
        last_ns: Times = np.append(self.ends_ns, NOTHING)[np.where(self.n_ends > 0, self.bounds[1:] - 1, -1)]
        return last_ns

    def ends(self, number: int) -> slice:
        return slice(int(self.bounds[number]), int(self.bounds[number + 1]))

    def within(self, start_ns: int, end_ns: int) -> range:
        """Return those that were launched from the one time on, and before the other."""
        first, last = np.searchsorted(self.launch_ns, (start_ns, end_ns)).tolist()
        return range(first, last)


def evaluations_of(record: EngineRecord) -> Evaluations:
    """Group a record's events: an optional entry of the first operator, the launch, then the end of each timed one."""
    events = _rows(record, "events", RING_DTYPE)
    launched = np.flatnonzero(events["index"] == 0)
    entered = np.append(NOTHING, np.flatnonzero(events["index"] == NOTHING))
    entry = entered[np.searchsorted(entered, launched) - 1] if launched.size else launched
    is_own = entry > np.append(NOTHING, launched[:-1])[: launched.size]
    first_start_ns = np.where(is_own, events["ns"][entry], NOTHING)
    ended = np.flatnonzero(~np.isin(events["index"], (0, NOTHING, _NO_OPERATOR)))
    bounds = np.searchsorted(ended, np.append(launched, events.size))
    ended = ended[bounds[0] :]
    began_ns = events["ns"].copy()
    began_ns[launched] = np.where(first_start_ns == NOTHING, events["ns"][launched], first_start_ns)
    return Evaluations(
        graph=events["graph"][launched].astype(np.int64),
        launch_ns=events["ns"][launched],
        first_start_ns=first_start_ns,
        starts_ns=began_ns[ended - 1],
        ends_ns=events["ns"][ended],
        bounds=bounds - bounds[0],
    )


def thread_operators(record: EngineRecord) -> Rows:
    """Return the operators of all threads: `THREAD_DTYPE`, by thread and time."""
    rows = _rows(record, "thread_events", THREAD_DTYPE)
    seen = np.frombuffer(record.thread_events, THREAD_DTYPE)["end_ns"] != 0
    rows["end_ns"] = np.where(seen, rows["end_ns"], NOTHING)
    return rows[np.lexsort((rows["start_ns"], rows["thread"]))]


def splits_of(record: EngineRecord) -> Rows:
    """Return the parts of graphs that were given to backends: `SPLIT_DTYPE`, in the order of time."""
    return _rows(record, "splits", SPLIT_DTYPE)


def experts_of(record: EngineRecord) -> tuple[Experts, int | None]:
    """Return what routers chose, in the order of time, and how many experts a layer has; None where nobody said.

    No row has its iteration yet. Its token is its place in the batch of the span that the choice was made in: a batch
    comes in ubatches, one behind the other, and a layer that has fewer tokens than the batch, as the last one has,
    computes those alone whose output is wanted, which is the last.
    """
    choices = _rows(record, "expert_choices", CHOICE_DTYPE)
    ids = _rows(record, "expert_ids", np.dtype("<i4"))
    sizes = choices["n_tokens"].astype(np.int64) * choices["n_used"]
    first, least = choices["first_id"], np.minimum(choices["n_tokens"], choices["n_used"])
    if ((least < 0) | (sizes < 0) | (first < 0) | (first > ids.size - sizes)).any():
        raise _broken(f"expert_choices names more ids than the {ids.size} of expert_ids")
    of_row = np.repeat(np.arange(choices.size), sizes)
    offset = np.arange(of_row.size) - (np.cumsum(sizes) - sizes)[of_row]
    token, slot = np.divmod(offset, choices["n_used"][of_row])
    made = np.full(of_row.size, NOTHING, EXPERT_DTYPE)
    made["ns"], made["layer"] = choices["ns"][of_row], choices["layer"][of_row]
    made["token"], made["slot"] = _first_tokens(choices, record)[of_row] + token, slot
    made["expert"] = ids[choices["first_id"][of_row] + offset]
    n_experts = int(choices["n_experts"].max(initial=0))
    return made[np.argsort(made["ns"], kind="stable")], n_experts or None


def _first_tokens(choices: Rows, record: EngineRecord) -> Ints:
    """Return the place of each choice's first token in its batch."""
    spans = sorted((each.start_ns, each.n_tokens) for each in record.spans if each.phase in GRAPH_PHASES)
    starts_ns, n_tokens = np.array(spans, np.int64).reshape(-1, 2).T
    batch = np.searchsorted(starts_ns, choices["ns"], side="right") - 1
    _, layer = np.unique(np.stack([batch, choices["layer"]]), axis=1, return_inverse=True)
    layer = layer.reshape(-1)
    n_own = choices["n_tokens"].astype(np.int64)
    n_known = np.bincount(layer, weights=n_own).astype(np.int64)[layer]
    n_left_out = np.where(batch >= 0, np.append(n_tokens, 0)[batch] - n_known, 0)
    order = np.argsort(layer, kind="stable")
    before = np.cumsum(n_own[order]) - n_own[order]
    first = np.searchsorted(layer[order], layer[order])
    n_before = np.empty_like(n_own)
    n_before[order] = before - before[first]
    found: Ints = np.maximum(0, n_left_out) + n_before
    return found


_TIMES = {"ns", "start_ns", "end_ns", "launch_ns", "return_ns"}


def _rows(record: EngineRecord, field: str, dtype: np.dtype[Any]) -> Rows:
    """Return the rows of a field with their ticks as nanoseconds.

    Raises MeasurementError: the field is cut short, or names a graph or a backend that there is none of.
    """
    content = getattr(record, field)
    if len(content) % dtype.itemsize:
        raise _broken(f"{field} has {len(content)} bytes, expected a multiple of {dtype.itemsize}")
    rows = np.frombuffer(content, dtype).copy()
    for name, known in (("graph", record.graphs), ("backend", record.backends)):
        named = rows[name] if name in (dtype.names or ()) and _lists(record, name) else rows[:0]
        if named.size and (named.min() < NOTHING or named.max() >= len(known)):
            raise _broken(f"{field} names {name} {named.min()} to {named.max()}, there are {len(known)}")
    if record.clock is not None and rows.size:
        for name in _TIMES & set(dtype.names or ()):
            rows[name] = ticks_to_ns(rows[name], record.clock)
    return rows


def _lists(record: EngineRecord, name: str) -> bool:
    """Whether a record lists what its rows name: graphs, unless its recorder asks for each operator and keeps none."""
    return name != "graph" or bool(record.graphs)


def _broken(what: str) -> MeasurementError:
    return MeasurementError(f"{RECORD}: {what}; {TODO}")


def ticks_to_ns(ticks: Ints, clock: TickClock) -> Times:
    """Interpolate linearly, to the nanosecond.

    Raises EngineError: the counter stood still.
    """
    span_ticks = clock.last_ticks - clock.first_ticks
    if span_ticks <= 0:
        raise EngineError(f"the time stamp counter did not advance ({clock.first_ticks} to {clock.last_ticks})")
    after_ns = (ticks - clock.first_ticks) * ((clock.last_ns - clock.first_ns) / span_ticks)
    times_ns: Times = clock.first_ns + np.rint(after_ns).astype(np.int64)
    return times_ns
