"""What RooflineBench reports, compared with this run with correct counting: agreement is reported, never demanded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import isfinite

from perfsuite.expectation.roofline.point import InferencePotential, inference_potential, memory_roof, nearest
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.experiments.roofline.checks import first_and_last, order_of, rows_of
from perfsuite.records.outcome import Statement
from perfsuite.units import format_change

_NOT_MEASURED = "the sweep '{}' was not measured"


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
