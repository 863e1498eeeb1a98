"""What is varied, and how its time compares with that of a plain run beside it, as forecast and as measured."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, stdev

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import phase_cases
from perfsuite.expectation.forecast import expected_part_ns
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.speculation import Drafting, Speculation
from perfsuite.expectation.timing.engine_times import EngineTimes, draft_forecasts, phase_shapes
from perfsuite.experiments.pairs import engine_record
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.llama_plan import llama_plan, with_files
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Payload, Rule, Series, pairs_of, take_rounds
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import faster_half_mean
from perfsuite.verdict.significance import t_quantile
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights

TTFT, TPOT = "ttft", "tpot"


#: What is varied: in which scenario, and what changes with it. The scenario is long where the cache is varied, for that
#: is read then, and has a prompt of one chunk where chunks are.
AXES = {
    "lora": ("p128-g32", (TTFT, TPOT)),
    "chunk": ("p512-g1", (TTFT,)),
    "parallel": ("p32-g32", (TPOT,)),
    "kv": ("p128-g32-d768", (TTFT, TPOT)),
    "draft": ("p64-g48", (TTFT, TPOT)),
}

RANKS = (4, 16, 64, 128)
CHUNKS = (32, 64, 128, 256)
SEQUENCES = (2, 4, 8, 16)
KV_TYPES = ("f32", "q8_0", "q5_1", "q4_0")
#: Tokens of a round, and the chance of each.
SPECULATIONS = ((2, 0.8), (4, 0.8), (8, 0.8), (4, 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantPoint:
    """A workload, and the plain one that it is measured beside."""

    axis: str
    setting: str
    plain: LlamaWorkload
    workload: LlamaWorkload


def variant_points(weights: Weights, draft: Weights, axes: tuple[str, ...]) -> Iterator[VariantPoint]:
    """Yield all points of the axes; `draft` is the model of a draft, beside which the text itself is one point more."""
    for axis in axes:
        plain = llama_workload(weights, find_scenario(AXES[axis][0]))
        for setting, workload in _varied(axis, plain, draft):
            yield VariantPoint(axis=axis, setting=setting, plain=plain, workload=workload)


def _varied(axis: str, plain: LlamaWorkload, draft: Weights) -> Iterator[tuple[str, LlamaWorkload]]:
    settings = plain.settings
    match axis:
        case "lora":
            yield from ((f"rank {n}", replace(plain, settings=replace(settings, lora_rank=n))) for n in RANKS)
        case "chunk":
            yield from ((f"{n} tokens", replace(plain, n_ubatch=n)) for n in CHUNKS)
        case "parallel":
            yield from ((f"{n} sequences", replace(plain, n_sequences=n)) for n in SEQUENCES)
        case "kv":
            types = ((name, replace(settings, type_k=name, type_v=name)) for name in KV_TYPES)
            yield from ((name, replace(plain, settings=changed)) for name, changed in types)
        case "draft":
            for weights, (n_draft, ratio) in (*((draft, each) for each in SPECULATIONS), (None, SPECULATIONS[1])):
                speculation = Speculation(n_draft=n_draft, acceptance_ratio=ratio)
                name = "ngram" if weights is None else weights.name
                drafted = plain.with_draft(Drafting(weights=weights, speculation=speculation))
                yield f"{name}:{n_draft}:{ratio:g}", drafted


#: Pairs of processes for each point, and how many a row needs.
N_PAIRS = 5
MIN_PAIRS = 3

#: Share of the measured ratios that an interval is meant to hold.
CONFIDENCE = 0.95

#: What a latency is the sum of.
_PARTS = {TTFT: (Phase.EMBEDDING, Phase.PREFILL, Phase.DRAFT_PREFILL), TPOT: (Phase.DECODE, Phase.DRAFT)}

#: By latency, ns.
Latencies = Mapping[str, float]
#: What a workload is expected to take.
Forecast = Callable[[LlamaWorkload], Latencies]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantRow:
    """One latency of one point: over that of the plain run, and by itself."""

    axis: str
    setting: str
    #: ``ttft`` or ``tpot``.
    latency: str
    forecast_ratio: float
    measured_ratio: float
    lower_ratio: float
    upper_ratio: float
    n_pairs: int
    expected_ns: float
    measured_ns: float

    @property
    def error_ratio(self) -> float:
        return self.forecast_ratio / self.measured_ratio - 1.0

    @property
    def absolute_error_ratio(self) -> float:
        return self.expected_ns / self.measured_ns - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSummary:
    """The errors of one latency along one axis."""

    axis: str
    latency: str
    n_rows: int
    #: Means of what is wrong with the ratios, and with the times.
    mean_error_ratio: float
    mean_absolute_error_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantBench:
    """What all points are measured with."""

    board: Board
    profile: Profile
    n_threads: int
    models_dir: Path
    n_pairs: int = N_PAIRS


def latencies_of(phases_ns: Mapping[Phase, float], workload: LlamaWorkload) -> Latencies:
    """Add phases up to the time of a prompt, and of a step: with a draft, of a round over its tokens on average."""
    drafting = workload.drafting
    n_tokens = {TTFT: 1.0, TPOT: 1.0 if drafting is None else drafting.speculation.tokens_per_round}
    return {
        latency: sum(phases_ns.get(phase, 0.0) for phase in phases) / n_tokens[latency]
        for latency, phases in _PARTS.items()
    }


def by_calibration(times: EngineTimes) -> Forecast:
    """Forecast by a calibration."""

    def forecast(workload: LlamaWorkload) -> Latencies:
        phases = {phase: times.phase(phase_shapes(workload, phase), phase.value) for phase in workload.graph_phases()}
        phases |= draft_forecasts(workload, times)
        return latencies_of({phase: each.expected_ns for phase, each in phases.items()}, workload)

    return forecast


def by_ceilings(ceilings: Ceilings) -> Forecast:
    """Forecast by the device's ceilings alone, which says more of ratios than of times."""

    def forecast(workload: LlamaWorkload) -> Latencies:
        cases = ((case.phase, case.costs) for case in phase_cases(workload) if case.phase is not None)
        phases = {phase: sum(expected_part_ns(part, ceilings) for part in costs) for phase, costs in cases}
        return latencies_of(phases, workload)

    return forecast


def measured_latencies(record: EngineRecord, workload: LlamaWorkload) -> Latencies:
    """Return what one process took: its phases as pairs reduce them, added up."""
    durations: dict[Phase, list[int]] = defaultdict(list)
    for span in record.spans:
        durations[span.phase].append(span.duration_ns)
    return latencies_of({phase: faster_half_mean(found) for phase, found in durations.items()}, workload)


def measure_variants(
    points: Sequence[VariantPoint], forecast: Forecast, bench: VariantBench, progress: Callable[[str], None]
) -> tuple[VariantRow, ...]:
    """Forecast each point, then measure it in pairs with its plain workload; rounds go through all points.

    A point with fewer than `MIN_PAIRS` undisturbed pairs is left out, and `progress` says so.

    Raises `MeasurementError`: none is left, or a worker failed.
    """
    order = random.Random()
    expected = [(forecast(point.plain), forecast(point.workload)) for point in points]
    series = [_series(point, bench, order) for point in points]
    take_rounds(
        series,
        bench.n_pairs,
        order=order,
        announce=lambda number, place, n, name: progress(f"round {number}, point {place} of {n}: {name}"),
    )
    rows: list[VariantRow] = []
    for point, (plain, varied), each in zip(points, expected, series, strict=True):
        if len(each.valid) < min(MIN_PAIRS, bench.n_pairs):
            progress(f"{each.name}: left out, {len(each.valid)} undisturbed pairs; {each.complaints[-1]}")
            continue
        rows += (_row(point, latency, plain, varied, each.valid) for latency in AXES[point.axis][1])
    if not rows:
        raise MeasurementError("no variant has enough undisturbed pairs; run it when nothing else runs")
    return tuple(rows)


def summarize(rows: Sequence[VariantRow]) -> Iterator[VariantSummary]:
    """Summarise the rows of each axis and latency."""
    groups: dict[tuple[str, str], list[VariantRow]] = defaultdict(list)
    for row in rows:
        groups[row.axis, row.latency].append(row)
    for (axis, latency), members in groups.items():
        yield VariantSummary(
            axis=axis,
            latency=latency,
            n_rows=len(members),
            mean_error_ratio=fmean(abs(row.error_ratio) for row in members),
            mean_absolute_error_ratio=fmean(abs(row.absolute_error_ratio) for row in members),
        )


def _series(point: VariantPoint, bench: VariantBench, order: random.Random) -> Series[tuple[Latencies, Latencies]]:
    def keep(payloads: Sequence[Payload]) -> tuple[Latencies, Latencies]:
        plain, varied = map(engine_record, payloads)
        return measured_latencies(plain, point.plain), measured_latencies(varied, point.workload)

    return Series(
        take=pairs_of(bench.board, (_plan(point.plain, bench), _plan(point.workload, bench)), order=order),
        rules=(Rule(profile=bench.profile),) * 2,
        keep=keep,
        name=f"{point.axis} {point.setting}",
    )


def _plan(workload: LlamaWorkload, bench: VariantBench) -> LlamaPlan:
    board, facts = bench.board, bench.board.facts()
    path, n_threads = board.place_weights(workload.weights), bench.n_threads
    plan = llama_plan(workload, facts.engine, gguf_path=path, cache_dir=facts.cache_dir, n_threads=n_threads)
    return with_files(plan, workload, board, bench.models_dir)


def _row(
    point: VariantPoint,
    latency: str,
    plain: Latencies,
    varied: Latencies,
    pairs: Sequence[tuple[Latencies, Latencies]],
) -> VariantRow:
    logs = [math.log(new[latency] / old[latency]) for old, new in pairs]
    reach = math.inf
    if len(logs) > 1:
        reach = t_quantile((1.0 + CONFIDENCE) / 2.0, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return VariantRow(
        axis=point.axis,
        setting=point.setting,
        latency=latency,
        forecast_ratio=varied[latency] / plain[latency],
        measured_ratio=math.exp(fmean(logs)),
        lower_ratio=math.exp(fmean(logs) - reach),
        upper_ratio=math.exp(min(fmean(logs) + reach, 700.0)),
        n_pairs=len(pairs),
        expected_ns=varied[latency],
        measured_ns=median(new[latency] for _, new in pairs),
    )
