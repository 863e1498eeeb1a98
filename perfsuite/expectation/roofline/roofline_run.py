"""What a roofline was measured with: ceilings, and the work and the times of every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from math import isfinite
from statistics import median
from typing import Any, TypeVar, get_type_hints

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate
from perfsuite.expectation.roofline.point import Point, place
from perfsuite.expectation.roofline.roof import Regime
from perfsuite.expectation.roofline.survey import Survey
from perfsuite.expectation.roofline.work import Work, WorkPart
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
    n_parameters: int
    n_layers: int
    scenario: str
    n_prompt: int
    n_gen: int
    n_depth: int
    n_threads: int
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
        n_prompt=scenario.n_prompt,
        n_gen=scenario.n_gen,
        n_depth=scenario.n_depth,
        n_threads=n_threads,
        flash_attn=settings.flash_attn,
        type_k=settings.type_k,
        type_v=settings.type_v,
    )


def attention_kind(architecture: Architecture) -> str:
    """Return how an architecture attends: through a latent vector, with shared key heads, or with one for each head."""
    if architecture.mla is not None:
        return "mla"
    return "mha" if architecture.n_kv_heads == architecture.n_heads else "gqa"


#: Raised whenever a field changes its meaning.
SCHEMA = 1

_LIMITS = {Regime.MEMORY: Resource.BANDWIDTH, Regime.COMPUTE: Resource.COMPUTE}

_Record = TypeVar("_Record")


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
    value: float | None
    kind: RowKind
    #: Of an operator: the phase and the role, such as ``decode/ffn_up``; else empty.
    role: str
    subject: Subject
    work: Work
    #: One value a process, ns.
    samples_ns: tuple[int, ...]

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
        ceilings = self.survey.of(CPU, row.subject.n_threads)
        return place(row.case, row.work, row.time_ns, ceilings)

    def spread_ratio(self, row: Row) -> float:
        """Return the spread of the ceiling that limits a row."""
        resource = _LIMITS[self.point(row).limit]
        return self.survey.spread_ratio(resource, CPU, row.subject.n_threads)

    def to_plain(self) -> dict[str, Any]:
        """Return the same as values that JSON has."""
        return {
            "schema": SCHEMA,
            "suite_version": self.suite_version,
            "recorded_at": self.recorded_at,
            "device": self.device,
            "engine": self.engine,
            "fingerprint": dict(self.fingerprint),
            "n_threads": self.n_threads,
            "ceilings": [ceiling.to_plain() for ceiling in self.survey.ceilings],
            "rows": [{**asdict(row), "kind": row.kind.value} for row in self.rows],
            "memory": [record.to_plain() for record in self.memory],
            "bounds": [rate.to_plain() for rate in self.bounds],
        }

    @classmethod
    def from_plain(cls, plain: object) -> RooflineRun:
        """Build from what `to_plain` returned; anything else is a MeasurementError that says where."""
        if not isinstance(plain, Mapping) or plain.get("schema") != SCHEMA:
            seen = plain.get("schema") if isinstance(plain, Mapping) else type(plain).__name__
            raise MeasurementError(f"roofline: schema is {seen!r}, this suite reads {SCHEMA}; measure again")
        try:
            run = cls(
                suite_version=str(plain["suite_version"]),
                recorded_at=str(plain["recorded_at"]),
                device=str(plain["device"]),
                engine=str(plain["engine"]),
                fingerprint=dict(plain["fingerprint"]),
                n_threads=int(plain["n_threads"]),
                survey=Survey(ceilings=tuple(Ceiling.from_plain(each) for each in plain["ceilings"])),
                rows=tuple(_row(each) for each in plain["rows"]),
                memory=tuple(MemoryRecord.from_plain(each) for each in plain["memory"]),
                bounds=tuple(IndependentRate.from_plain(each) for each in plain["bounds"]),
            )
            for n_threads in {run.n_threads, *(row.subject.n_threads for row in run.rows)}:
                run.survey.of(CPU, n_threads)
            return run
        except KeyError as error:
            raise MeasurementError(f"roofline: field {error} is missing; measure again") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise MeasurementError(f"roofline: {error}; measure again") from error


def _row(plain: object) -> Row:
    if not isinstance(plain, Mapping):
        raise ValueError(f"a row is {type(plain).__name__}, expected an object")
    samples_ns = tuple(plain["samples_ns"])
    if not samples_ns or not all(type(sample) is int and sample > 0 for sample in samples_ns):
        raise ValueError(f"samples_ns are {plain['samples_ns']!r}, expected one or more whole numbers above 0")
    value = None if plain["value"] is None else float(plain["value"])
    if value is not None and not isfinite(value):
        raise ValueError(f"value is {value!r}, expected a finite number or null")
    return Row(
        sweep=str(plain["sweep"]),
        setting=str(plain["setting"]),
        value=value,
        kind=RowKind(plain["kind"]),
        role=str(plain["role"]),
        subject=_record(Subject, plain["subject"]),
        work=_work(plain["work"]),
        samples_ns=samples_ns,
    )


def _work(plain: Mapping[str, Any]) -> Work:
    work = Work(
        parts=tuple(_record(WorkPart, part) for part in plain["parts"]),
        counts_activations=bool(plain["counts_activations"]),
    )
    for part in work.parts:
        if not part.least_stored_bytes <= part.stored_bytes <= part.most_stored_bytes:
            raise ValueError(f"WorkPart: stored_bytes is {part.stored_bytes}, expected from least to most")
    if not work.flops or not work.least_traffic_bytes:
        raise ValueError("work has no FLOPs or moves no bytes, expected some of both")
    return work


def _record(record_type: type[_Record], plain: Mapping[str, Any]) -> _Record:
    names = {field.name for field in fields(record_type)}  # type: ignore[arg-type]
    if set(plain) != names:
        raise ValueError(f"{record_type.__name__}: fields are {sorted(plain)}, expected {sorted(names)}")
    for name, accepted in get_type_hints(record_type).items():
        value = plain[name]
        fits = isinstance(value, accepted) and isinstance(value, bool) is (accepted is bool)
        if not fits or (isinstance(value, int) and value < 0):
            told = "0 or more" if accepted is int else getattr(accepted, "__name__", accepted)
            raise ValueError(f"{record_type.__name__}: {name} is {value!r}, expected {told}")
    return record_type(**plain)
