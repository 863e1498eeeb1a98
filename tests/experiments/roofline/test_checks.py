"""What holds of every roofline, and the paper's findings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.ceiling import BANDWIDTH_KINDS, IndependentRate, Resource, Survey
from perfsuite.expectation.roofline.point import Regime
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind, read_roofline
from perfsuite.experiments.roofline import checks
from perfsuite.experiments.roofline.checks import (
    SERIES_CHECKS,
    agreements,
    all_checks,
    bound_check,
    ceiling_check,
    floor_ns,
    memory_check,
    paper_findings,
    regime_check,
)
from perfsuite.records.outcome import Statement
from tests.synthetic_roofline import (
    SPREAD_RATIO,
    bandwidth_ceiling,
    bound_work,
    compute_ceiling,
    independent_rate,
    memory_record,
    part,
    prefill_row,
    roofline_run,
    row,
    subject,
    survey,
    work,
)

STORED_DIR = Path(__file__).parents[3] / "baselines" / "rooflines"


@pytest.mark.parametrize(("spread_ratio", "is_within"), [(0.03, True), (0.01, False)])
def test_points_within_both_spreads_agree(spread_ratio: float, is_within: bool) -> None:
    """A point that is 4 % slower or faster agrees where the processes of each run spread by 3 %, and not by 1 %."""
    first = row(samples_ns=tuple(round(10**8 * (1.0 + each)) for each in (-spread_ratio, 0.0, spread_ratio)))
    second = replace(first, samples_ns=tuple(round(1.04 * each) for each in first.samples_ns))
    for one, other, ratio in ((first, second, 1 / 1.04), (second, first, 1.04)):
        (found,) = agreements(roofline_run(one), roofline_run(other))
        assert found.ratio == pytest.approx(ratio)
        assert found.spread_ratio == pytest.approx(2 * spread_ratio)
        assert found.is_within is is_within


def test_what_is_in_one_run_alone_or_of_two_processes_is_no_disagreement() -> None:
    depth, kv = row(sweep="depth"), row(sweep="kv")
    assert [each.case for each in agreements(roofline_run(depth, kv), roofline_run(kv))] == [kv.case]
    with pytest.raises(PerfsuiteError, match="no point in common"):
        list(agreements(roofline_run(depth), roofline_run(kv)))
    few = row(samples_ns=(100_000_000, 100_000_000))
    (found,) = agreements(roofline_run(few), roofline_run(replace(few, samples_ns=(200_000_000,) * 3)))
    assert found.is_within


def test_two_stored_runs_agree_but_where_processes_fall_into_two_groups() -> None:
    first, again = (read_roofline(STORED_DIR / f"{name}.json") for name in ("host-sweeps", "host-sweeps-again"))
    found = tuple(agreements(first, again))
    assert len(found) == len(first.rows) == 51
    apart = {each.case.split("/")[2] for each in found if not each.is_within}
    assert apart <= {"attention-mla-absorbed-135m-q8_0"}


def arithmetic(best_per_s: float, **changes: object) -> IndependentRate:
    usual = independent_rate(resource=Resource.COMPUTE, kind="fp32", best_per_s=best_per_s)
    return replace(usual, **changes)  # type: ignore[arg-type]


STREAM = independent_rate(program="stream", best_per_s=30e9)


@pytest.mark.parametrize(
    ("rates", "counts", "name", "holds", "told"),
    [
        ([independent_rate(best_per_s=22.2e9)], (2,), "read", True, "20.0 GB/s against numpy's 22.2 GB/s (threads: 2)"),
        ([independent_rate(best_per_s=22.3e9)], (2,), "read", False, "20.0 GB/s against numpy's 22.3 GB/s"),
        ([independent_rate(n_threads=1, best_per_s=10.5e9)], (1, 2), "read", True, "10.0 GB/s against numpy's 10.5"),
        ([arithmetic(444e9)], (2,), "fp32", True, "400 GFLOP/s"),
        ([arithmetic(445e9)], (2,), "fp32", False, "400 GFLOP/s"),
        ([independent_rate(), STREAM], (2,), "read", False, "stream's 30.0 GB/s"),
    ],
)
def test_a_ceiling_below_another_program_is_told(
    rates: list[IndependentRate], counts: tuple[int, ...], name: str, holds: bool, told: str
) -> None:
    """It may stay a tenth below what any other program of as many threads reads or computes, and no further.

    What the cache reads, 100 GB/s, is not compared.
    """
    found = bound_check(roofline_run(survey=survey(*counts), bounds=tuple(rates)), f"bound/cpu/{name}")
    assert (found.name, found.holds) == (f"bound/cpu/{name}", holds)
    assert told in found.evidence


def test_absent_programs_are_told() -> None:
    """Nothing is decided, and what to install is named; one that ran on other threads is not called absent."""
    run = roofline_run(bounds=(independent_rate(),))
    absent = bound_check(run, "bound/opencl/fp32")
    assert (absent.holds, absent.evidence) == (
        None,
        "no independent program has measured fp32 of opencl; install likwid, STREAM or clpeak",
    )
    strange = roofline_run(bounds=(independent_rate(n_threads=7),))
    undecided = bound_check(strange, "bound/cpu/read")
    assert undecided.holds is None
    assert undecided.evidence.startswith("no ceiling of ours was measured beside read of numpy")


@pytest.mark.parametrize(("best_per_s", "holds"), [(900e9, True), (1200e9, False)])
def test_opencl_is_held_against_its_own_device(best_per_s: float, holds: bool) -> None:
    """Ceilings of an OpenCL device have no threads, and the processor's are not taken for them."""
    device = "A device"
    own = [replace(each, processor=device) for each in (compute_ceiling(1000e9, n_threads=None),)]
    run = roofline_run(
        survey=Survey(ceilings=(*survey().ceilings, *own)),
        bounds=(arithmetic(best_per_s, program="clpeak", processor=device, n_threads=None),),
    )
    found = bound_check(run, "bound/opencl/fp32")
    assert found.holds is holds
    assert "threads" not in found.evidence
    assert bound_check(run, "bound/cpu/fp32").holds is None


def test_each_kind_of_stream_is_bounded_by_itself() -> None:
    levels = [
        bandwidth_ceiling(20e9 if kind != "triad" else 5e9, 10**9, kind=kind, n_threads=2) for kind in BANDWIDTH_KINDS
    ]
    rates = tuple(independent_rate(kind=kind) for kind in BANDWIDTH_KINDS)
    run = roofline_run(survey=Survey(ceilings=(*levels, compute_ceiling(400e9))), bounds=rates)
    holds = {kind: bound_check(run, f"bound/cpu/{kind}").holds for kind in BANDWIDTH_KINDS}
    assert holds == {"read": True, "copy": True, "triad": False}


FLOOR_NS = 50_000_000


def timed(time_ns: float, **changes: object) -> Row:
    return row(samples_ns=(round(time_ns),) * 3, **changes)


def depth_rows(*times_ms: float, spread_ratio: float = 0.0) -> list[Row]:
    """Return whole runs of equal work over depths, with outer samples so far from their middle."""
    factors = (1 - spread_ratio, 1.0, 1 + spread_ratio)
    return [
        row(
            sweep="depth",
            setting=str(2 << step),
            value=float(2 << step),
            kind=RowKind.WHOLE_RUN,
            samples_ns=tuple(round(time_ms * 1e6 * factor) for factor in factors),
        )
        for step, time_ms in enumerate(times_ms)
    ]


def series_check(run: RooflineRun, name: str) -> Statement:
    return SERIES_CHECKS[name].statement(run)


@pytest.mark.parametrize(("above_ratio", "holds"), [(0.5, True), (1.099, True), (1.101, False)])
def test_a_point_above_its_ceiling_is_told(above_ratio: float, holds: bool) -> None:
    """Up to the spread of the ceilings a point may lie above its roof, and no further."""
    fast = timed(FLOOR_NS / above_ratio)
    run = roofline_run(fast)
    found = ceiling_check(run, fast)
    assert found.holds is (fast.time_ns >= floor_ns(run, fast)) is holds
    assert floor_ns(run, fast) == pytest.approx(FLOOR_NS / (1 + SPREAD_RATIO))
    assert found.name == f"{fast.case}/ceiling"
    assert f"is {above_ratio:.0%} of the" in found.evidence
    assert "spread of the ceilings 10%" in found.evidence


def test_experts_are_given_the_benefit_of_routing() -> None:
    """Half of the experts may have been read, which are not all of memory's working set: 0.5 GB at 100 GB/s is 5 ms."""
    routed = work(part(least_stored_bytes=5 * 10**8, most_stored_bytes=2 * 10**9))
    fast, too_fast = timed(4_600_000, work=routed), timed(4_500_000, work=routed)
    run = roofline_run(fast, too_fast)
    assert floor_ns(run, fast) == pytest.approx(5_000_000 / (1 + SPREAD_RATIO))
    assert [ceiling_check(run, each).holds for each in (fast, too_fast)] == [True, False]


@pytest.mark.parametrize(("operational_intensity", "is_compute"), [(19.9, False), (20.0, True), (100.0, True)])
def test_a_phase_on_the_wrong_side_of_the_ridge_is_told(operational_intensity: float, is_compute: bool) -> None:
    """Memory must limit decode and arithmetic a prompt of 128 tokens: from 20 FLOPs a byte on it does."""
    found = row(work=bound_work(operational_intensity))
    check = regime_check(roofline_run(found), found)
    assert (check.holds, check.name) == (not is_compute, f"{found.case}/regime")
    assert check.evidence == f"{operational_intensity:.3g} FLOP/byte, ridge at 20"
    prompt = replace(prefill_row(subject=subject(n_prompt=128)), work=bound_work(operational_intensity))
    assert regime_check(roofline_run(prompt), prompt).holds is is_compute


def test_short_prompts_and_those_of_experts_may_be_anywhere() -> None:
    """Below 128 tokens no regime is demanded, nor where experts vary; of its decode it is."""
    short = prefill_row(subject=subject(n_prompt=127))
    run = roofline_run(short)
    assert regime_check(run, short).holds is None
    assert [check.name for check in all_checks(run)] == [f"{short.case}/ceiling"]
    parts = replace(bound_work(100).parts[0], least_stored_bytes=10**8)
    prompt = replace(prefill_row(subject=subject(n_prompt=512)), work=work(parts))
    assert regime_check(roofline_run(prompt), prompt).holds is None
    step = row(work=work(parts))
    assert regime_check(roofline_run(step), step).holds is False


@pytest.mark.parametrize(
    ("f16", "q4_k_m", "holds"), [(2, 4, True), (2, 2, False), (2, 1, False), (2, 0, None), (0, 2, None)]
)
def test_precision_must_go_to_the_right(f16: float, q4_k_m: float, holds: bool | None) -> None:
    """Q4_K_M with more FLOPs a byte than F16 holds, with as many or fewer it does not; without one it is undecided."""
    settings = {"f16": f16, "q8_0": 3, "q4_k_m": q4_k_m}
    rows = [row(sweep="precision", setting=name, work=bound_work(each)) for name, each in settings.items() if each]
    prompts = [prefill_row(sweep="precision", setting=each) for each in ("f16", "q4_k_m")]
    found = series_check(roofline_run(row(), *prompts, *rows), "precision-order")
    assert (found.name, found.holds) == ("precision-order", holds)
    if holds is not None:
        assert found.evidence == f"f16 {f16} FLOP/byte, q8_0 3 FLOP/byte, q4_k_m {q4_k_m} FLOP/byte"


@pytest.mark.parametrize(
    ("times_ms", "spread_ratio", "holds"),
    [
        ((109, 100), 0.05, None),
        ((100, 109), 0.05, None),
        ((112, 100), 0.05, True),
        ((100, 112), 0.05, False),
        ((100, 10, 50), 0.0, True),
    ],
)
def test_rates_must_rise_with_depth(times_ms: tuple[float, ...], spread_ratio: float, holds: bool | None) -> None:
    run = roofline_run(*depth_rows(*times_ms, spread_ratio=spread_ratio))
    found = series_check(run, "depth-rises")
    assert (found.name, found.holds) == ("depth-rises", holds)
    assert found.evidence.startswith("2 ")


@pytest.mark.parametrize(
    ("tolerance_bytes", "peak_bytes", "holds"),
    [
        *((0, 1575, True), (0, 1425, True), (0, 1576, False), (0, 1424, False)),
        *((10 * 2**20, 1500 + 10 * 2**20, True), (10 * 2**20, 1501 + 10 * 2**20, False)),
    ],
)
def test_memory_is_held_to_its_tolerance(
    tolerance_bytes: int, peak_bytes: int, holds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 1500 bytes a twentieth more or less passes, or 10 MiB where those are more, and nothing beyond."""
    assert checks.MEMORY_TOLERANCE_BYTES == 10 * 2**20
    monkeypatch.setattr(checks, "MEMORY_TOLERANCE_BYTES", tolerance_bytes)
    usual = memory_record()
    found = memory_check(replace(usual, timeline=replace(usual.timeline, peak_rss_bytes=peak_bytes)))
    assert (found.name, found.holds) == ("memory/own-q8_0/siso", holds)
    assert "1.46 KiB predicted" in found.evidence


@pytest.mark.parametrize("name", ["host-sweeps", "host-sweeps-again", "host-other-sweeps", "host-llama-3.2-1b"])
def test_every_check_holds_of_a_stored_run(name: str) -> None:
    """No point that was measured lies above its ceiling, and each is in the regime that it must be in."""
    found = {check.name: check for check in all_checks(read_roofline(STORED_DIR / f"{name}.json"))}
    assert [f"{check.name}: {check.evidence}" for check in found.values() if check.holds is False] == []
    assert {check.holds for check in found.values() if check.name.endswith("/ceiling")} == {True}
    assert name != "host-sweeps" or found["precision-order"].holds is found["depth-rises"].holds is True


def finding(run: RooflineRun, name: str) -> Statement:
    return {each.name: each for each in paper_findings(run)}[name]


def whole(setting: str, operational_intensity: float, time_ms: float = 400.0) -> Row:
    return row(
        sweep="scenario",
        setting=setting,
        kind=RowKind.WHOLE_RUN,
        work=bound_work(operational_intensity),
        samples_ns=(round(time_ms * 1e6),) * 3,
    )


def layered(n_layers: int, time_ms: float, *, kind: RowKind = RowKind.WHOLE_RUN, intensity: float = 10.0) -> Row:
    """Return a row of the sweep over depth; its outer samples lie 1 % from the middle."""
    return row(
        sweep="depth",
        setting=str(n_layers),
        value=float(n_layers),
        kind=kind,
        work=bound_work(intensity),
        samples_ns=tuple(round(time_ms * factor * 1e6) for factor in (0.99, 1.0, 1.01)),
    )


def attending(setting: str, operational_intensity: float, time_ms: float = 100.0) -> Row:
    """Return a decode of the sweep over attention; its outer samples lie 1 % from the middle."""
    samples_ns = tuple(round(time_ms * factor * 1e6) for factor in (0.99, 1.0, 1.01))
    return row(sweep="attention", setting=setting, work=bound_work(operational_intensity), samples_ns=samples_ns)


@pytest.mark.parametrize(
    ("name", "rows", "holds"),
    [
        ("liso-nearest", [whole("siso", 10), whole("liso", 10, 200), whole("silo", 10, 500)], True),
        ("liso-nearest", [whole("siso", 10), whole("liso", 10, 800), whole("lilo", 10, 600)], False),
        ("liso-nearest", [whole("siso-long", 10), whole("liso-long", 10, 200)], True),
        ("liso-nearest", [whole("siso", 10), whole("silo", 10)], None),
        ("liso-intensity", [whole("siso", 5), whole("liso", 60), whole("lilo", 50)], True),
        ("liso-intensity", [whole("siso", 5), whole("liso", 40), whole("lilo", 50)], False),
    ],
)
def test_liso_is_nearest_and_has_the_highest_intensity(name: str, rows: list[Row], holds: bool | None) -> None:
    """Also of real length; intensities are compared across regimes: they are counted and not distances."""
    found = finding(roofline_run(*rows), name)
    assert found.holds is holds
    assert name != "liso-nearest" or holds is None or "(memory)" in found.evidence


def test_liso_alone_in_its_regime_is_compared_with_none() -> None:
    """Far nearer to its ridge than all others, it is undecided still; under one roof for all LILO is compared."""
    rows = (whole("siso", 5), whole("liso", 200, 510), whole("silo", 2), whole("lilo", 10))
    run = roofline_run(*rows)
    assert [run.point(each).regime for each in rows].count(Regime.COMPUTE) == 1
    found = finding(run, "liso-nearest")
    assert found.holds is None
    assert found.evidence.startswith("LISO alone is in the compute regime and is compared with none: siso ")
    rows = (whole("siso", 5), whole("liso", 200, 1000), whole("silo", 2), whole("lilo", 40, 400))
    found = finding(roofline_run(*rows), "liso-nearest-classical")
    assert found.holds is True
    assert found.evidence.count("(compute)") == found.evidence.count("(memory)") == 2


@pytest.mark.parametrize(
    ("intensities", "holds"),
    [
        ((10, 12, 11, 10), True),
        ((13, 12, 11, 10), False),
        ((10, 11, 12, 13), False),
        ((10, 11, 12, 11), False),
        ((10, 12), None),
    ],
)
def test_intensity_peaks_at_few_layers(intensities: tuple[float, ...], holds: bool | None) -> None:
    """Of 2, 4, 8 and 16 layers 4 must have the most FLOPs a byte; two depths have no peak."""
    rows = [layered(2 << step, 400, intensity=each) for step, each in enumerate(intensities)]
    assert finding(roofline_run(*rows), "intensity-peak-over-depth").holds is holds


@pytest.mark.parametrize("kind", [RowKind.PREFILL, RowKind.WHOLE_RUN])
@pytest.mark.parametrize(
    ("times_ms", "holds"),
    [
        ((400, 300, 200), True),
        ((400, 396, 300), True),
        ((200, 300, 400), False),
        ((400, 200, 300), False),
        ((400, 399, 398), None),
        ((400,), None),
    ],
)
def test_rates_keep_rising(kind: RowKind, times_ms: tuple[float, ...], holds: bool | None) -> None:
    """A fall anywhere beyond the spread is none; a rise from first to last must be beyond it, too."""
    run = roofline_run(*(layered(2 << step, time_ms, kind=kind) for step, time_ms in enumerate(times_ms)))
    assert finding(run, f"rate-over-depth-{kind.value}").holds is holds
    others = {each.value for each in (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN)} - {kind.value}
    assert {finding(run, f"rate-over-depth-{other}").holds for other in others} == {None}


@pytest.mark.parametrize(
    ("intensities", "mla_highest", "gqa_lowest"),
    [
        ({"mha": 2, "gqa": 1, "mla": 3}, True, True),
        ({"mha": 2, "gqa": 3, "mla": 1}, False, False),
        ({"mha": 1, "gqa": 2, "mla": 1.5, "mla-absorbed": 3}, True, False),
        ({"mha": 1, "gqa": 2}, None, False),
        ({"mha": 1, "mla": 2}, True, None),
    ],
)
def test_intensity_by_attention(
    intensities: dict[str, float], mla_highest: bool | None, gqa_lowest: bool | None
) -> None:
    """MLA is MLA absorbed or not."""
    run = roofline_run(*(attending(setting, each) for setting, each in intensities.items()))
    assert finding(run, "mla-intensity").holds is mla_highest
    assert finding(run, "gqa-intensity").holds is gqa_lowest


@pytest.mark.parametrize(
    ("times_ms", "mla_fastest", "gqa_slowest"),
    [
        ({"mha": 150, "gqa": 200, "mla": 100}, True, True),
        ({"mha": 150, "gqa": 100, "mla": 200}, False, False),
        ({"mha": 150, "gqa": 200, "mla": 190, "mla-absorbed": 100}, True, True),
        ({"mha": 101, "gqa": 200, "mla": 100}, None, True),
        ({"mha": 100, "gqa": 199, "mla": 200}, False, None),
        ({"mha": 200, "gqa": 300, "mla": 100.5, "mla-absorbed": 100}, True, True),
        ({"mha": 200, "mla": 100}, True, None),
    ],
)
def test_rate_by_attention(times_ms: dict[str, float], mla_fastest: bool | None, gqa_slowest: bool | None) -> None:
    """Two ways of MLA are no rivals."""
    run = roofline_run(*(attending(setting, 2.0, each) for setting, each in times_ms.items()))
    assert finding(run, "mla-rate").holds is mla_fastest
    assert finding(run, "gqa-rate").holds is gqa_slowest
