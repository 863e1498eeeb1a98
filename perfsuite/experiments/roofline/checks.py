"""What must hold of every roofline, of each point by itself and of some series; and what RooflineBench reports.

Agreement with the paper is reported, never demanded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import isfinite

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

_NOT_MEASURED = "the sweep '{}' was not measured"


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
    return tuple(name for name, (sweep, _) in SERIES_CHECKS.items() if sweep in sweeps)


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
    series = (SERIES_CHECKS[name][1](run) for name in series_checks_of({row.sweep for row in run.rows}))
    memory = (memory_check(record) for record in run.memory)
    bounds = (bound_check(run, name) for name in BOUNDED if run.bounds)
    return (*(each for each in points if each.holds is not None), *series, *memory, *bounds)


def precision_order(run: RooflineRun) -> Statement:
    """In SILO, fewer bits lie further to the right: decode with Q4_K_M has a higher intensity than with F16."""
    rows = {row.setting: row for row in rows_of(run, "precision", RowKind.DECODE)}
    claim = "Q4_K_M lies to the right of F16 in SILO"
    if not {"f16", "q4_k_m"} <= rows.keys():
        return Statement(name="precision-order", claim=claim, holds=None, evidence=_NOT_MEASURED.format("precision"))
    intensity = {setting: run.point(row).operational_intensity for setting, row in rows.items()}
    return Statement(
        name="precision-order",
        claim=claim,
        holds=intensity["q4_k_m"] > intensity["f16"],
        evidence=", ".join(f"{setting} {value:.3g} FLOP/byte" for setting, value in intensity.items()),
    )


def depth_rises(run: RooflineRun) -> Statement:
    """P rises with depth: a whole run attains more FLOP/s with the most layers than with the fewest."""
    rows = rows_of(run, "depth", RowKind.WHOLE_RUN)
    claim = "P of whole runs rises with depth"
    if len(rows) < 2:
        return Statement(name="depth-rises", claim=claim, holds=None, evidence=_NOT_MEASURED.format("depth"))
    ratio, spread = first_and_last(run, rows)
    holds = None if abs(ratio - 1.0) <= spread else ratio > 1.0
    return Statement(name="depth-rises", claim=claim, holds=holds, evidence=order_of(run, rows))


#: The sweep that each check of a series is about, and the check.
SERIES_CHECKS = {"precision-order": ("precision", precision_order), "depth-rises": ("depth", depth_rises)}


def paper_findings(run: RooflineRun) -> tuple[Statement, ...]:
    """Hold each of the paper's findings against the run."""
    return tuple(finding(run) for finding in _FINDINGS)


def _liso_nearest(run: RooflineRun) -> Statement:
    """LISO's whole run lies nearest to the ridge, each under the roof of its own types and working sets."""
    return _liso_nearest_by(run, "liso-nearest", "its own ridge", lambda row: run.point(row).potential)


def _liso_nearest_classical(run: RooflineRun) -> Statement:
    """The same under the paper's roof, 32-bit arithmetic over the bandwidth of memory, which is one for all."""
    roof = memory_roof(run.survey.of(run.n_threads))

    def potential(row: Row) -> InferencePotential:
        point = run.point(row)
        return inference_potential(point.operational_intensity, point.flops_per_s, roof)

    name, ridge = "liso-nearest-classical", "the ridge of FP32 over memory"
    claim = f"of whole runs, LISO lies nearest to {ridge}"
    for row in rows_of(run, "scenario", RowKind.WHOLE_RUN):
        point = run.point(row)
        if point.flops_per_s > roof.attainable_flops_per_s(point.operational_intensity):
            evidence = f"{row.setting} lies above that roof, for its arithmetic is faster than FP32"
            return Statement(name=name, claim=claim, holds=None, evidence=evidence)
    return _liso_nearest_by(run, name, ridge, potential)


def _liso_nearest_by(
    run: RooflineRun, name: str, ridge: str, potential: Callable[[Row], InferencePotential]
) -> Statement:
    """Compare LISO with the scenarios of its regime only."""
    rows = rows_of(run, "scenario", RowKind.WHOLE_RUN)
    liso = next((row for row in rows if _is(row, "liso")), None)
    claim = f"of whole runs, LISO lies nearest to {ridge}"
    if liso is None or len(rows) < 2:
        return _unmeasured(name, claim, "scenario")
    placed = [(row, potential(row)) for row in rows]
    regime = next(at.regime for row, at in placed if row is liso)
    alike = [(row, at) for row, at in placed if at.regime is regime]
    told = ", ".join(f"{row.setting} {_potential_text(at)}" for row, at in placed)
    if len(alike) < 2:
        evidence = f"LISO alone is in the {regime.value} regime and is compared with none: {told}"
        return Statement(name=name, claim=claim, holds=None, evidence=evidence)
    chosen, _ = alike[nearest([at for _, at in alike])]
    return Statement(name=name, claim=claim, holds=chosen is liso, evidence=told)


def _intensity_peaks_over_depth(run: RooflineRun) -> Statement:
    """OI over depth peaks at 3 to 5 layers: of the depths that were measured, one of these has the highest."""
    rows = rows_of(run, "depth", RowKind.WHOLE_RUN)
    claim = "over depth, operational intensity peaks at 3 to 5 layers"
    if len(rows) < 3:
        return _unmeasured("intensity-peak-over-depth", claim, "depth")
    highest = max(rows, key=lambda row: run.point(row).operational_intensity)
    return Statement(
        name="intensity-peak-over-depth",
        claim=claim,
        holds=3 <= (highest.value or 0) <= 5,
        evidence=f"highest with {highest.setting} layers: {_intensities(run, rows)}",
    )


def _rate_rises_with_depth(run: RooflineRun, kind: RowKind) -> Statement:
    """P keeps rising: more with the most layers than with the fewest, and no doubling loses more than its spread."""
    rows = rows_of(run, "depth", kind)
    name, claim = f"rate-over-depth-{kind.value}", f"over depth, P of {kind.value} keeps rising"
    if len(rows) < 2:
        return _unmeasured(name, claim, "depth")
    steps = [first_and_last(run, pair) for pair in pairwise(rows)]
    falls = any(ratio < 1.0 - spread for ratio, spread in steps)
    ratio, spread = first_and_last(run, rows)
    return Statement(
        name=name,
        claim=claim,
        holds=False if falls or ratio < 1.0 - spread else (True if ratio > 1.0 + spread else None),
        evidence=f"{format_change(ratio)} from first to last ({_spread_text(spread)}): {order_of(run, rows)}",
    )


def _fewer_bits_further_right(run: RooflineRun) -> Statement:
    rows = rows_of(run, "precision", RowKind.DECODE)
    claim = "the fewer bits a weight has, the higher the intensity of decode"
    if len(rows) < 2:
        return _unmeasured("precision-intensity", claim, "precision")
    values = [run.point(row).operational_intensity for row in rows]
    rises = all(one < another for one, another in pairwise(values))
    return Statement(name="precision-intensity", claim=claim, holds=rises, evidence=_intensities(run, rows))


def _extreme_intensity(
    run: RooflineRun, *, name: str, claim: str, sweep: str, kind: RowKind, wanted: str, is_highest: bool = True
) -> Statement:
    """Check whether the row whose setting begins with `wanted` has the highest or lowest intensity."""
    rows = rows_of(run, sweep, kind)
    if len(rows) < 2 or not any(_is(row, wanted) for row in rows):
        return _unmeasured(name, claim, sweep)
    chosen = (max if is_highest else min)(rows, key=lambda row: run.point(row).operational_intensity)
    return Statement(name=name, claim=claim, holds=_is(chosen, wanted), evidence=_intensities(run, rows))


def _extreme_rate(run: RooflineRun, *, name: str, claim: str, wanted: str, is_highest: bool) -> Statement:
    """Check whether a decode attains the most or the fewest FLOP/s; undecided within the spread of the best rival."""
    rows = rows_of(run, "attention", RowKind.DECODE)
    ordered = sorted(rows, key=lambda row: run.point(row).flops_per_s, reverse=is_highest)
    own = next((row for row in ordered if _is(row, wanted)), None)
    rival = next((row for row in ordered if not _is(row, wanted)), None)
    if own is None or rival is None:
        return _unmeasured(name, claim, "attention")
    ratio, spread = first_and_last(run, (rival, own))
    holds = None if abs(ratio - 1.0) <= spread else (ratio > 1.0) is is_highest
    return Statement(name=name, claim=claim, holds=holds, evidence=order_of(run, ordered))


def _spread_text(spread: float) -> str:
    return f"spread {spread:.0%}" if isfinite(spread) else "spread not known, too few processes"


def _is(row: Row, wanted: str) -> bool:
    return row.setting.partition("-")[0] == wanted


def _potential_text(potential: InferencePotential) -> str:
    return f"{potential.decades:.2f} decades ({potential.regime.value})"


def _intensities(run: RooflineRun, rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.setting} {run.point(row).operational_intensity:.3g} FLOP/byte" for row in rows)


def _unmeasured(name: str, claim: str, sweep: str) -> Statement:
    return Statement(name=name, claim=claim, holds=None, evidence=_NOT_MEASURED.format(sweep))


_FINDINGS: tuple[Callable[[RooflineRun], Statement], ...] = (
    _liso_nearest,
    _liso_nearest_classical,
    partial(
        _extreme_intensity,
        name="liso-intensity",
        claim="of whole runs, LISO has the highest intensity",
        sweep="scenario",
        kind=RowKind.WHOLE_RUN,
        wanted="liso",
    ),
    _intensity_peaks_over_depth,
    *(partial(_rate_rises_with_depth, kind=kind) for kind in (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN)),
    *(
        partial(
            _extreme_intensity,
            name=f"{wanted}-intensity",
            claim=f"of decode, {wanted.upper()} has the {which} intensity",
            sweep="attention",
            kind=RowKind.DECODE,
            wanted=wanted,
            is_highest=which == "highest",
        )
        for wanted, which in (("mla", "highest"), ("gqa", "lowest"))
    ),
    *(
        partial(
            _extreme_rate,
            name=f"{wanted}-rate",
            claim=f"of decode, {wanted.upper()} attains the {which} FLOP/s",
            wanted=wanted,
            is_highest=which == "most",
        )
        for wanted, which in (("mla", "most"), ("gqa", "fewest"))
    ),
    _fewer_bits_further_right,
)
