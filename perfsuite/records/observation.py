"""What a run saw beside its times: tokens, one replicate's operators in order, work, the state of the machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.codec import Amount, Count, Number, double, read_json, to_plain
from perfsuite.records.whole_file import write_json


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLatency:
    """One decode step at one place in the sequence."""

    #: Tokens in the context when the step began.
    n_context: Count
    #: One value a valid replicate, ns: the median over its repetitions.
    samples_ns: tuple[Count, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpan:
    """One timed operator of the replicate that is shown."""

    role: str
    #: As ggml names it, fused pairs joined by ``+``.
    op: str
    #: None where the operator belongs to no layer.
    layer: Count | None
    #: From the start of its phase.
    start_ns: Count
    duration_ns: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTimeline:
    """One occurrence of a phase in the replicate whose time was the median."""

    phase: str
    n_tokens: Count
    duration_ns: Count
    #: In the order of time.
    operators: tuple[OperatorSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleNode:
    """All operators of one role in one occurrence of a phase."""

    role: str
    op: str
    n_operators: Count
    #: Their time together in the replicate that is shown.
    time_ns: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleEdge:
    """What one role computes and another one reads."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseGraph:
    """The graph of a phase with the layers folded into one."""

    phase: str
    nodes: tuple[RoleNode, ...]
    edges: tuple[RoleEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWork:
    """What a case computes and moves, by the analytical model."""

    case_id: str
    flops: Count
    moved_bytes: Count

    @property
    def operational_intensity(self) -> float | None:
        """FLOPs a byte; None where nothing is moved."""
        return self.flops / self.moved_bytes if self.moved_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """What the machine was like around one replicate; None is 'not measured'."""

    group: str
    #: Since the run began, s.
    at_s: Amount
    #: Whether the replicate counts; False where it was left out.
    is_valid: bool
    load_average: Amount | None
    cpu_mhz: Amount | None
    temperature_celsius: Number | None
    waiting_ratio: Amount | None
    steal_ratio: Amount | None
    #: Whether the device held its clocks back.
    throttled: bool | None = None
    #: What was left of its battery, 1 is full.
    battery_ratio: Amount | None = None
    power_watts: Amount | None = None
    #: The slowest and the fastest clock, and the hottest zone, that were seen while the replicate or pair ran.
    least_cpu_mhz: Amount | None = None
    most_cpu_mhz: Amount | None = None
    most_celsius: Number | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything of a run that a report shows and no verdict rests on."""

    tokens: tuple[TokenLatency, ...] = ()
    timelines: tuple[PhaseTimeline, ...] = ()
    graphs: tuple[PhaseGraph, ...] = ()
    works: tuple[CaseWork, ...] = ()
    states: tuple[MachineState, ...] = ()


NO_OBSERVATION = Observation()


#: Raised whenever a field changes its meaning.
SCHEMA = 1

OBSERVATION_NAME = "observation.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    role: str
    op: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timeline:
    """A timeline in the file: operators are rows of numbers, since there are thousands."""

    phase: str
    n_tokens: Count
    duration_ns: Count
    names: tuple[_Named, ...]
    #: A row is what `operator_fields` say; ``name`` counts in `names`.
    operators: tuple[tuple[Count, Count | None, Count, Count], ...]
    operator_fields: tuple[Literal["name"], Literal["layer"], Literal["start_ns"], Literal["duration_ns"]] = (
        *("name", "layer", "start_ns", "duration_ns"),
    )

    def __post_init__(self) -> None:
        if any(row[0] >= len(self.names) for row in self.operators):
            raise ValueError(f"an operator has a name beyond the {len(self.names)} names")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File(Observation):
    timelines: tuple[_Timeline, ...]  # type: ignore[assignment]


def write_observation(observation: Observation, run_dir: Path) -> Path:
    """Write the file into the run's folder; return its path."""
    path = run_dir / OBSERVATION_NAME
    write_json(path, plain_observation(observation), MeasurementError)
    return path


def read_observation(run_dir: Path) -> Observation:
    """Read the file of a run's folder; an empty observation where there is none.

    Raises PerfsuiteError: the file is there and cannot be used; the message says why.
    """
    path = run_dir / OBSERVATION_NAME
    read = read_json(path, _File, PerfsuiteError, "delete it or run again", schema=SCHEMA, absent=None)
    if read is None:
        return NO_OBSERVATION
    if twice := double(work.case_id for work in read.works):
        raise PerfsuiteError(f"{path}: works{twice}; run again")
    others = {each.name: getattr(read, each.name) for each in fields(Observation)}
    return Observation(**others | {"timelines": tuple(map(_read_timeline, read.timelines))})


def plain_observation(observation: Observation) -> dict[str, Any]:
    """Return the observation as JSON-able values; operators are rows of numbers, since there are thousands."""
    timelines = [to_plain(_file_timeline(each)) for each in observation.timelines]
    return {"schema": SCHEMA, **to_plain(observation), "timelines": timelines}


def _file_timeline(timeline: PhaseTimeline) -> _Timeline:
    names = {name: at for at, name in enumerate(dict.fromkeys((each.role, each.op) for each in timeline.operators))}
    return _Timeline(
        phase=timeline.phase,
        n_tokens=timeline.n_tokens,
        duration_ns=timeline.duration_ns,
        names=tuple(_Named(role=role, op=op) for role, op in names),
        operators=tuple((names[s.role, s.op], s.layer, s.start_ns, s.duration_ns) for s in timeline.operators),
    )


def _read_timeline(read: _Timeline) -> PhaseTimeline:
    return PhaseTimeline(
        phase=read.phase,
        n_tokens=read.n_tokens,
        duration_ns=read.duration_ns,
        operators=tuple(
            OperatorSpan(**asdict(read.names[name]), layer=layer, start_ns=start_ns, duration_ns=duration_ns)
            for name, layer, start_ns, duration_ns in read.operators
        ),
    )
