"""The paper's findings, each true, false and undecided over runs made for it.

The made-up device's ridge lies at 20 FLOPs a byte for 32-bit floats over memory; a row of 1 GB takes 50 ms at least.
"""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.point import Regime
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.experiments.roofline.checks import paper_findings
from perfsuite.records.outcome import Statement
from tests.synthetic_roofline import bound_work, roofline_run, row


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
