"""``observation.json``: what a run saw beside its cases' times, kept beside its ``run.json``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.codec import Count, double, read_json, to_plain
from perfsuite.records.observation import (
    NO_OBSERVATION,
    CaseWork,
    MachineState,
    Observation,
    OperatorSpan,
    PhaseGraph,
    PhaseTimeline,
    TokenLatency,
)
from perfsuite.records.whole_file import write_json

#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What the file is called in the run's folder.
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
class _File:
    tokens: tuple[TokenLatency, ...]
    timelines: tuple[_Timeline, ...]
    graphs: tuple[PhaseGraph, ...]
    works: tuple[CaseWork, ...]
    states: tuple[MachineState, ...]


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
    timelines = tuple(map(_read_timeline, read.timelines))
    return Observation(**{name: getattr(read, name) for name in _File.__slots__} | {"timelines": timelines})


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
