"""What a run saw beside its times: tokens, one replicate's operators in order, work, the state of the machine."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.codec import Amount, Count, Number


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
