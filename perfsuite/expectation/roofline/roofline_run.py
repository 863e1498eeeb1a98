"""What a roofline was measured with: ceilings, and the work and the times of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import Ceiling, IndependentRate, Resource, Survey
from perfsuite.expectation.roofline.point import Point, Regime, Work, place
from perfsuite.records.codec import Count, Number, Size, from_plain, plain_json, to_plain
from perfsuite.records.whole_file import write_json
from perfsuite.workload.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A workload as words and numbers, for tables and pictures."""

    weights: str
    architecture: str
    #: None for a given file, whose types may be any mixture.
    quantization: str | None
    #: ``mha``, ``gqa`` or ``mla``.
    attention: str
    n_parameters: Count
    n_layers: Count
    scenario: str
    n_prompt: Count
    n_gen: Count
    n_depth: Count
    n_threads: Count
    flash_attn: bool
    type_k: str
    type_v: str

    @property
    def name(self) -> str:
        """The middle of case ids: weights, scenario, and the settings that are not the usual ones."""
        unusual = [
            *(() if self.flash_attn else ("no-flash-attn",)),
            *(() if self.type_k == self.type_v == "f16" else (f"kv-{self.type_k}-{self.type_v}",)),
            f"t{self.n_threads}",
        ]
        return f"{self.weights}/{self.scenario}/{'-'.join(unusual)}"


def subject_of(workload: LlamaWorkload, n_threads: int) -> Subject:
    """Describe a workload on so many threads."""
    architecture, scenario, settings = workload.weights.architecture, workload.scenario, workload.settings
    return Subject(
        weights=workload.weights.name,
        architecture=architecture.name,
        quantization=workload.weights.quantization,
        attention=attention_kind(architecture),
        n_parameters=architecture.n_parameters,
        n_layers=architecture.n_layers,
        scenario=scenario.name,
        n_threads=n_threads,
        **{name: getattr(scenario, name) for name in ("n_prompt", "n_gen", "n_depth")},
        **{name: getattr(settings, name) for name in ("flash_attn", "type_k", "type_v")},
    )


def attention_kind(architecture: Architecture) -> str:
    """Return how an architecture attends: through a latent vector, with shared key heads, or with one for each head."""
    if architecture.mla is not None:
        return "mla"
    return "mha" if architecture.n_kv_heads == architecture.n_heads else "gqa"


#: Raised whenever a field changes its meaning.
SCHEMA = 1

_LIMITS = {Regime.MEMORY: Resource.BANDWIDTH, Regime.COMPUTE: Resource.COMPUTE}


class RowKind(str, Enum):
    """What a row is about; points of different kinds are not one series."""

    PREFILL = "prefill"
    #: One token, with the context that it has half way through the generation.
    DECODE = "decode"
    #: The prompt and all tokens together.
    WHOLE_RUN = "whole_run"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measured piece of work."""

    #: The sweep that asked for it, and the place in it: a label, and a number where it has one.
    sweep: str
    setting: str
    value: Number | None
    kind: RowKind
    #: Of an operator: the phase and the role, such as ``decode/ffn_up``; else empty.
    role: str
    subject: Subject
    work: Work
    #: One value a process, ns.
    samples_ns: Annotated[tuple[Size, ...], Meta(min_length=1, description="one or more whole numbers above 0")]

    @property
    def case(self) -> str:
        """The id of the row within a run: sweep, subject, and what of it."""
        return f"roofline/{self.sweep}/{self.subject.name}/{self.role or self.kind.value}"

    @property
    def time_ns(self) -> float:
        """The median of the processes."""
        return median(self.samples_ns)

    @property
    def spread_ratio(self) -> float:
        """Half the distance between the outer samples, as a share of the median."""
        return (max(self.samples_ns) - min(self.samples_ns)) / 2.0 / self.time_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRun:
    """One run of sweeps with the ceilings of its device."""

    suite_version: str
    recorded_at: str
    device: str
    engine: str
    fingerprint: Mapping[str, str]
    n_threads: int
    survey: Survey
    rows: tuple[Row, ...]
    #: What a process of a workload took, beside the prediction.
    memory: tuple[MemoryRecord, ...] = ()
    #: What programs that are not ours have reached, where they were asked.
    bounds: tuple[IndependentRate, ...] = ()

    def point(self, row: Row) -> Point:
        """Place a row under the ceilings of the processor with the row's number of threads."""
        ceilings = self.survey.of(row.subject.n_threads)
        return place(row.case, row.work, row.time_ns, ceilings)

    def spread_ratio(self, row: Row) -> float:
        """Return the spread of the ceiling that limits a row."""
        resource = _LIMITS[self.point(row).limit]
        return self.survey.spread_ratio(resource, row.subject.n_threads)

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {
            "schema": SCHEMA,
            **{name: to_plain(getattr(self, name)) for name in _Same.__annotations__},
            "ceilings": to_plain(self.survey.ceilings),
            "memory": [record.to_plain() for record in self.memory],
        }

    @classmethod
    def from_plain(cls, plain: object) -> RooflineRun:
        """Build from what `to_plain` returned; anything else is a MeasurementError that says where."""
        values: Any = from_plain(plain, _Plain, "roofline", MeasurementError, "measure again", schema=SCHEMA)
        survey = Survey(ceilings=values.pop("ceilings"))
        memory = tuple(map(MemoryRecord.from_plain, values.pop("memory")))
        run = cls(**values, survey=survey, memory=memory)
        for row in run.rows:
            if not row.work.flops or not row.work.least_traffic_bytes:
                raise MeasurementError(f"roofline: {row.case}: has no FLOPs or moves no bytes; measure again")
        for n_threads in {run.n_threads, *(row.subject.n_threads for row in run.rows)}:
            run.survey.of(n_threads)
        return run


class _Same(TypedDict):
    suite_version: str
    recorded_at: str
    device: str
    engine: str
    fingerprint: dict[str, str]
    n_threads: Size
    rows: tuple[Row, ...]
    bounds: tuple[IndependentRate, ...]


class _Plain(_Same):
    ceilings: tuple[Ceiling, ...]
    memory: list[Any]


def write_roofline(run: RooflineRun, path: Path) -> None:
    """Write a run whole; MeasurementError where the file cannot be written."""
    write_json(path, run.to_plain(), MeasurementError)


def read_roofline(path: Path) -> RooflineRun:
    """Read a run; MeasurementError names the file and what is wrong with it."""
    plain = plain_json(path, MeasurementError, "expected a file of 'perfsuite roofline'")
    try:
        return RooflineRun.from_plain(plain)
    except MeasurementError as error:
        raise MeasurementError(f"{path}: {error}") from None
