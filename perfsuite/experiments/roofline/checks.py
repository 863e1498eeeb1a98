"""What must hold of every roofline, of each point by itself and of some series; and what RooflineBench reports.

Agreement with the paper is reported, never demanded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, IndependentRate, Resource
from perfsuite.expectation.roofline.point import InferencePotential, Regime, inference_potential, memory_roof, nearest
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.records.outcome import Statement
from perfsuite.units import format_bytes, format_bytes_per_s, format_change, format_flops_per_s
from perfsuite.verdict.compare import MIN_SAMPLES


def rows_of(run: RooflineRun, sweep: str, kind: RowKind) -> tuple[Row, ...]:
    """Return the rows of a sweep that are of one kind, in the order of the sweep."""
    return tuple(row for row in run.rows if row.sweep == sweep and row.kind is kind)


def first_and_last(run: RooflineRun, rows: Sequence[Row]) -> tuple[float, float]:
    """Return the rate of the last row over that of the first, and the spread of both together."""
    first, last = rows[0], rows[-1]
    return run.point(last).flops_per_s / run.point(first).flops_per_s, spread_of_both(first, last)


def spread_of_both(first: Row, second: Row) -> float:
    """Return what two points may differ by; of fewer than `MIN_SAMPLES` processes it is not known: anything."""
    is_known = min(len(first.samples_ns), len(second.samples_ns)) >= MIN_SAMPLES
    return first.spread_ratio + second.spread_ratio if is_known else math.inf


def order_of(run: RooflineRun, rows: Sequence[Row]) -> str:
    """Tell the rate of each setting."""
    return ", ".join(f"{row.setting} {format_flops_per_s(run.point(row).flops_per_s)}" for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One point in two runs."""

    case: str
    #: P of the second run over that of the first.
    ratio: float
    #: What the two may differ by: the half ranges of both runs' processes together.
    spread_ratio: float

    @property
    def is_within(self) -> bool:
        """Whether the points differ by no more than their spreads; with fewer than three processes nobody can tell."""
        return abs(math.log(self.ratio)) <= math.log1p(self.spread_ratio)


def agreements(first: RooflineRun, second: RooflineRun) -> Iterator[Agreement]:
    """Compare the points that both runs have, in the order of the first; `PerfsuiteError` where there is none."""
    others = {row.case: row for row in second.rows}
    if others.keys().isdisjoint(row.case for row in first.rows):
        raise PerfsuiteError("the two runs have no point in common; compare runs of the same sweeps and threads")
    for row in first.rows:
        other = others.get(row.case)
        if other is not None:
            yield Agreement(
                case=row.case,
                ratio=second.point(other).flops_per_s / first.point(row).flops_per_s,
                spread_ratio=spread_of_both(row, other),
            )


#: What a ceiling may stay below another program: minutes of a shared machine differ by as much.
TOLERANCE_RATIO = 0.10

#: What is bounded, on the processor and through OpenCL.
BOUNDED = (
    *("bound/cpu/fp32", "bound/cpu/read", "bound/cpu/copy", "bound/cpu/triad"),
    *("bound/opencl/fp32", "bound/opencl/read"),
)

_CLAIM = f"no other program is faster than the ceiling by more than {TOLERANCE_RATIO:.0%}"


def bound_check(run: RooflineRun, name: str) -> Statement:
    """Check one of `BOUNDED`; undecided where no program was there to tell."""
    _, where, kind = name.split("/")
    rates = [each for each in run.bounds if each.kind == kind and (each.processor == CPU) is (where == CPU)]
    pairs = [(each, ceiling) for each in rates if (ceiling := _ceiling(run, each)) is not None]
    if not pairs:
        return Statement(name=name, claim=_CLAIM, holds=None, evidence=_untold(rates, where, kind))
    least = 1.0 - TOLERANCE_RATIO
    holds = all(ceiling.rate and ceiling.rate.best_per_s >= least * each.best_per_s for each, ceiling in pairs)
    return Statement(name=name, claim=_CLAIM, holds=holds, evidence="; ".join(_told(pairs)))


def _ceiling(run: RooflineRun, rate: IndependentRate) -> Ceiling | None:
    alike = [
        each
        for each in run.survey.ceilings
        if each.rate
        and (each.processor, each.resource, each.kind) == (rate.processor, rate.resource, rate.kind)
        and each.n_threads == rate.n_threads
    ]
    return max(alike, key=lambda each: each.working_set_bytes or 0, default=None)


def _untold(rates: Sequence[IndependentRate], where: str, kind: str) -> str:
    if rates:
        programs = ", ".join(dict.fromkeys(each.program for each in rates))
        return f"no ceiling of ours was measured beside {kind} of {programs} on as many threads of the same processor"
    return f"no independent program has measured {kind} of {where}; install likwid, STREAM or clpeak"


def _told(pairs: Sequence[tuple[IndependentRate, Ceiling]]) -> list[str]:
    return [
        f"{_amount(each.resource, ceiling.rate.best_per_s)} against {each.program}'s "
        f"{_amount(each.resource, each.best_per_s)}"
        f"{'' if each.n_threads is None else f' (threads: {each.n_threads})'}"
        for each, ceiling in pairs
        if ceiling.rate
    ]


def _amount(resource: Resource, per_s: float) -> str:
    return format_bytes_per_s(per_s) if resource is Resource.BANDWIDTH else format_flops_per_s(per_s)


#: From so many tokens on, arithmetic limits a prompt.
COMPUTE_PROMPT_TOKENS = 128

#: What a process may take beyond or below the prediction: the engine's own records are in none.
MEMORY_TOLERANCE_RATIO = 0.05
#: The same where that is more: the engine's own records hardly depend on the weights.
MEMORY_TOLERANCE_BYTES = 10 * 1024 * 1024


def ceiling_check(run: RooflineRun, row: Row) -> Statement:
    """No point lies above its roof by more than the ceilings' spread, at the highest intensity that routing allows."""
    point, spread = run.point(row), run.spread_ratio(row)
    return Statement(
        name=f"{row.case}/ceiling",
        claim="no point lies above its ceiling",
        holds=point.ceiling_ratio <= 1.0 + spread,
        evidence=(
            f"{format_flops_per_s(point.flops_per_s)} at {point.most_intensity:.3g} FLOP/byte is "
            f"{point.ceiling_ratio:.0%} of the {format_flops_per_s(point.roof.peak_flops_per_s)} and "
            f"{format_bytes_per_s(point.roof.bandwidth_bytes_per_s)} that its types and working sets allow "
            f"(spread of the ceilings {spread:.0%})"
        ),
    )


def floor_ns(run: RooflineRun, row: Row) -> float:
    """Return the time below which `ceiling_check` fails a row: the least that its roof allows / (1 + spread), ns."""
    return run.point(row).least_time_ns / (1.0 + run.spread_ratio(row))


def series_checks_of(sweeps: Collection[str]) -> tuple[str, ...]:
    """Return the checks that some sweeps can answer."""
    return tuple(name for name, finding in SERIES_CHECKS.items() if finding.sweep in sweeps)


def expected_regime(kind: RowKind, n_prompt: int, *, is_routed: bool) -> Regime | None:
    """Return the regime that a row of one request must be in; None where either is possible.

    A step reads all weights for one token. A prompt of `COMPUTE_PROMPT_TOKENS` uses each of them so many times, but
    where a router spreads its tokens over experts.
    """
    if kind is RowKind.DECODE:
        return Regime.MEMORY
    is_long = n_prompt >= COMPUTE_PROMPT_TOKENS
    return Regime.COMPUTE if kind is RowKind.PREFILL and is_long and not is_routed else None


def regime_check(run: RooflineRun, row: Row) -> Statement:
    """Memory limits decode; arithmetic limits the prompt of 128 tokens and more of a dense architecture."""
    is_routed = any(part.least_stored_bytes != part.most_stored_bytes for part in row.work.parts)
    point, expected = run.point(row), expected_regime(row.kind, row.subject.n_prompt, is_routed=is_routed)
    claim = "either regime" if expected is None else f"{row.kind.value} is in the {expected.value} regime"
    return Statement(
        name=f"{row.case}/regime",
        claim=claim,
        holds=None if expected is None else point.regime is expected,
        evidence=f"{point.operational_intensity:.3g} FLOP/byte, ridge at {point.roof.ridge_point:.3g}",
    )


def memory_check(record: MemoryRecord) -> Statement:
    """The peak is what was predicted: base, weights, KV cache and buffers explain all but a small rest."""
    peak = record.peak
    rest = peak.unexplained_bytes / max(1, peak.predicted_bytes)
    accepted_bytes = max(MEMORY_TOLERANCE_BYTES, MEMORY_TOLERANCE_RATIO * peak.predicted_bytes)
    return Statement(
        name=f"memory/{record.weights}/{record.scenario}",
        claim=f"the peak of the memory is as predicted, within {format_bytes(accepted_bytes)}",
        holds=abs(peak.unexplained_bytes) <= accepted_bytes,
        evidence=(
            f"{format_bytes(peak.measured_bytes)} at the peak, {format_bytes(peak.predicted_bytes)} predicted "
            f"({format_change(1.0 + rest)})"
        ),
    )


def all_checks(run: RooflineRun) -> tuple[Statement, ...]:
    """Return every check: of each point, then of the series that the run has."""
    points = (check(run, row) for row in run.rows for check in (ceiling_check, regime_check))
    series = (SERIES_CHECKS[name].statement(run) for name in series_checks_of({row.sweep for row in run.rows}))
    memory = (memory_check(record) for record in run.memory)
    bounds = (bound_check(run, name) for name in BOUNDED if run.bounds)
    return (*(each for each in points if each.holds is not None), *series, *memory, *bounds)


#: Whether rows of a sweep show a claim, None where that cannot be told, and by what; None where they are too few.
_Judge = Callable[[RooflineRun, Sequence[Row]], tuple[bool | None, str] | None]


class Finding(NamedTuple):
    """A claim about the rows of one kind of a sweep."""

    name: str
    claim: str
    sweep: str
    kind: RowKind
    judge: _Judge

    def statement(self, run: RooflineRun) -> Statement:
        """Compare it with a run."""
        judged = self.judge(run, rows_of(run, self.sweep, self.kind))
        holds, evidence = judged or (None, f"the sweep '{self.sweep}' was not measured")
        return Statement(name=self.name, claim=self.claim, holds=holds, evidence=evidence)


def paper_findings(run: RooflineRun) -> tuple[Statement, ...]:
    """Compare each of the paper's findings with the run."""
    return tuple(finding.statement(run) for finding in _PAPER_FINDINGS)


def _fewest_bits_right(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    intensity = {row.setting: run.point(row).operational_intensity for row in rows}
    if not {"f16", "q4_k_m"} <= intensity.keys():
        return None
    return intensity["q4_k_m"] > intensity["f16"], _intensities(run, rows)


def _each_further_right(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    values = [run.point(row).operational_intensity for row in rows]
    rises = all(one < another for one, another in pairwise(values))
    return (rises, _intensities(run, rows)) if len(rows) > 1 else None


def _ends_higher(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    if len(rows) < 2:
        return None
    ratio, spread = first_and_last(run, rows)
    return None if abs(ratio - 1.0) <= spread else ratio > 1.0, order_of(run, rows)


def _keeps_rising(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    """P keeps rising: more with the most layers than with the fewest, and no doubling loses more than its spread."""
    if len(rows) < 2:
        return None
    falls = any(ratio < 1.0 - spread for ratio, spread in (first_and_last(run, pair) for pair in pairwise(rows)))
    ratio, spread = first_and_last(run, rows)
    holds = False if falls or ratio < 1.0 - spread else (True if ratio > 1.0 + spread else None)
    told = f"spread {spread:.0%}" if math.isfinite(spread) else "spread not known, too few processes"
    return holds, f"{format_change(ratio)} from first to last ({told}): {order_of(run, rows)}"


def _peaks_at_3_to_5(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    if len(rows) < 3:
        return None
    highest = max(rows, key=lambda row: run.point(row).operational_intensity)
    evidence = f"highest with {highest.setting} layers: {_intensities(run, rows)}"
    return 3 <= (highest.value or 0) <= 5, evidence


def _liso_nearest(
    run: RooflineRun, rows: Sequence[Row], potential: Callable[[Row], InferencePotential] | None = None
) -> tuple[bool | None, str] | None:
    """LISO lies nearest to the ridge among the scenarios of its regime, by default each to that of its own roof."""
    liso = next((row for row in rows if _is(row, "liso")), None)
    if liso is None or len(rows) < 2:
        return None
    placed = [(row, potential(row) if potential else run.point(row).potential) for row in rows]
    regime = next(at.regime for row, at in placed if row is liso)
    alike = [(row, at) for row, at in placed if at.regime is regime]
    told = ", ".join(f"{row.setting} {at.decades:.2f} decades ({at.regime.value})" for row, at in placed)
    if len(alike) < 2:
        return None, f"LISO alone is in the {regime.value} regime and is compared with none: {told}"
    chosen, _ = alike[nearest([at for _, at in alike])]
    return chosen is liso, told


def _liso_nearest_classical(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
    """The same under the paper's roof, 32-bit arithmetic over the bandwidth of memory, which is one for all."""
    roof = memory_roof(run.survey.of(run.n_threads))

    def place(row: Row) -> tuple[float, float]:
        point = run.point(row)
        return point.operational_intensity, point.flops_per_s

    for row in rows:
        intensity, flops_per_s = place(row)
        if flops_per_s > roof.attainable_flops_per_s(intensity):
            return None, f"{row.setting} lies above that roof, for its arithmetic is faster than FP32"
    return _liso_nearest(run, rows, lambda row: inference_potential(*place(row), roof))


def _extreme_intensity(wanted: str, *, is_highest: bool = True) -> _Judge:

    def judge(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
        if len(rows) < 2 or not any(_is(row, wanted) for row in rows):
            return None
        chosen = (max if is_highest else min)(rows, key=lambda row: run.point(row).operational_intensity)
        return _is(chosen, wanted), _intensities(run, rows)

    return judge


def _extreme_rate(wanted: str, *, is_highest: bool) -> _Judge:
    """Check whether a row attains the most or the fewest FLOP/s; undecided within the spread of the best rival."""

    def judge(run: RooflineRun, rows: Sequence[Row]) -> tuple[bool | None, str] | None:
        ordered = sorted(rows, key=lambda row: run.point(row).flops_per_s, reverse=is_highest)
        own, rival = (next((row for row in ordered if _is(row, wanted) is own), None) for own in (True, False))
        if own is None or rival is None:
            return None
        ratio, spread = first_and_last(run, (rival, own))
        return None if abs(ratio - 1.0) <= spread else (ratio > 1.0) is is_highest, order_of(run, ordered)

    return judge


def _is(row: Row, wanted: str) -> bool:
    return row.setting.partition("-")[0] == wanted


def _intensities(run: RooflineRun, rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.setting} {run.point(row).operational_intensity:.3g} FLOP/byte" for row in rows)


_PREFILL, _DECODE, _WHOLE = RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN

#: What must hold of the series of a sweep, by name.
SERIES_CHECKS = {
    each.name: each
    for each in (
        Finding("precision-order", "Q4_K_M lies to the right of F16 in SILO", "precision", _DECODE, _fewest_bits_right),
        Finding("depth-rises", "P of whole runs rises with depth", "depth", _WHOLE, _ends_higher),
    )
}

_NEAREST = "of whole runs, LISO lies nearest to"
_PAPER_FINDINGS = (
    Finding("liso-nearest", f"{_NEAREST} its own ridge", "scenario", _WHOLE, _liso_nearest),
    Finding(
        *("liso-nearest-classical", f"{_NEAREST} the ridge of FP32 over memory", "scenario", _WHOLE),
        _liso_nearest_classical,
    ),
    Finding(
        *("liso-intensity", "of whole runs, LISO has the highest intensity", "scenario", _WHOLE),
        _extreme_intensity("liso"),
    ),
    Finding(
        *("intensity-peak-over-depth", "over depth, operational intensity peaks at 3 to 5 layers", "depth", _WHOLE),
        _peaks_at_3_to_5,
    ),
    *(
        Finding(
            *(f"rate-over-depth-{kind.value}", f"over depth, P of {kind.value} keeps rising", "depth", kind),
            _keeps_rising,
        )
        for kind in (_PREFILL, _DECODE, _WHOLE)
    ),
    *(
        Finding(
            *(f"{wanted}-intensity", f"of decode, {wanted.upper()} has the {which} intensity", "attention", _DECODE),
            _extreme_intensity(wanted, is_highest=which == "highest"),
        )
        for wanted, which in (("mla", "highest"), ("gqa", "lowest"))
    ),
    *(
        Finding(
            *(f"{wanted}-rate", f"of decode, {wanted.upper()} attains the {which} FLOP/s", "attention", _DECODE),
            _extreme_rate(wanted, is_highest=which == "most"),
        )
        for wanted, which in (("mla", "most"), ("gqa", "fewest"))
    ),
    Finding(
        *("precision-intensity", "the fewer bits a weight has, the higher the intensity of decode", "precision"),
        _DECODE,
        _each_further_right,
    ),
)
