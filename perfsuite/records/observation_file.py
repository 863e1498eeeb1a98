"""``observation.json``: what a run saw beside its cases' times, kept beside its ``run.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.json_file import write_json
from perfsuite.records.observation import (
    NO_OBSERVATION,
    CaseWork,
    MachineState,
    Observation,
    OperatorSpan,
    PhaseGraph,
    PhaseTimeline,
    RoleEdge,
    RoleNode,
    TokenLatency,
)
from perfsuite.records.observation_fields import OBSERVATION_FIELDS, SPAN_FIELDS
from perfsuite.records.run_json import refuse_constant

#: Raised whenever a field changes its meaning.
SCHEMA = 1

#: What the file is called in the run's folder.
OBSERVATION_NAME = "observation.json"

#: What the columns of an operator's row are; ``name`` counts in the timeline's ``names``.
_SPAN_FIELDS = ("name", "layer", "start_ns", "duration_ns")


def write_observation(observation: Observation, run_dir: Path) -> Path:
    """Write the file into the run's folder; return its path."""
    path = run_dir / OBSERVATION_NAME
    write_json(path, plain_observation(observation), MeasurementError)
    return path


def read_observation(run_dir: Path) -> Observation:
    """Read the file of a run's folder; an empty observation where there is none.

    Raises
    ------
    PerfsuiteError
        The file is there and cannot be used; the message says why.
    """
    path = run_dir / OBSERVATION_NAME
    try:
        plain = json.loads(path.read_text("utf-8"), parse_constant=refuse_constant)
    except FileNotFoundError:
        return NO_OBSERVATION
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); delete it or run again") from error
    except (ValueError, RecursionError) as error:
        raise PerfsuiteError(f"{path}: is not JSON ({error}); delete it or run again") from error
    schema = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
    if schema != SCHEMA or isinstance(schema, bool):
        raise PerfsuiteError(f"{path}: is no observation.json of schema {SCHEMA} (schema is {schema!r}); run again")
    if wrong := OBSERVATION_FIELDS(plain):
        raise PerfsuiteError(f"{path}: {wrong.removeprefix('.')}; run again")
    try:
        return _observation(plain)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise PerfsuiteError(f"{path}: cannot be used ({type(error).__name__}: {error}); run again") from error


def plain_observation(observation: Observation) -> dict[str, Any]:
    """Return the observation as JSON-able values; operators are rows of numbers, since there are thousands."""
    return {
        "schema": SCHEMA,
        "tokens": [asdict(each) for each in observation.tokens],
        "timelines": [_plain_timeline(each) for each in observation.timelines],
        "graphs": [asdict(each) for each in observation.graphs],
        "works": [asdict(each) for each in observation.works],
        "states": [asdict(each) for each in observation.states],
    }


def _plain_timeline(timeline: PhaseTimeline) -> dict[str, Any]:
    names = list(dict.fromkeys((span.role, span.op) for span in timeline.operators))
    numbers = {name: number for number, name in enumerate(names)}
    return {
        "phase": timeline.phase,
        "n_tokens": timeline.n_tokens,
        "duration_ns": timeline.duration_ns,
        "names": [{"role": role, "op": op} for role, op in names],
        "operator_fields": list(_SPAN_FIELDS),
        "operators": [
            [numbers[span.role, span.op], span.layer, span.start_ns, span.duration_ns] for span in timeline.operators
        ],
    }


def _observation(plain: Mapping[str, Any]) -> Observation:
    return Observation(
        tokens=tuple(
            TokenLatency(n_context=each["n_context"], samples_ns=tuple(each["samples_ns"])) for each in plain["tokens"]
        ),
        timelines=tuple(_timeline(each) for each in plain["timelines"]),
        graphs=tuple(
            PhaseGraph(
                phase=each["phase"],
                nodes=tuple(RoleNode(**node) for node in each["nodes"]),
                edges=tuple(RoleEdge(**edge) for edge in each["edges"]),
            )
            for each in plain["graphs"]
        ),
        works=tuple(CaseWork(**each) for each in plain["works"]),
        states=tuple(MachineState(**each) for each in plain["states"]),
    )


def _timeline(plain: Mapping[str, Any]) -> PhaseTimeline:
    names, fields = plain["names"], plain["operator_fields"]
    return PhaseTimeline(
        phase=plain["phase"],
        n_tokens=plain["n_tokens"],
        duration_ns=plain["duration_ns"],
        operators=tuple(_span(dict(zip(fields, row, strict=True)), names) for row in plain["operators"]),
    )


def _span(row: Mapping[str, Any], names: Sequence[Mapping[str, str]]) -> OperatorSpan:
    if wrong := SPAN_FIELDS(row):
        raise ValueError(f"operators: {wrong.removeprefix('.')}")
    name = names[row["name"]]
    return OperatorSpan(
        role=name["role"],
        op=name["op"],
        layer=row["layer"],
        start_ns=row["start_ns"],
        duration_ns=row["duration_ns"],
    )
