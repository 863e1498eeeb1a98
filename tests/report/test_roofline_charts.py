"""The pictures of a roofline run."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.expectation.roofline.survey import Roof
from perfsuite.records.chart import RooflinePanel, RoofRole
from perfsuite.report.roofline_charts import devices_chart, operators_chart, place_of, sweep_chart, sweep_groups

from .conftest import phases, row, run_of

ROUTED = [
    row(
        "moe", f"sparse, {n_prompt}", kind, intensity=4.0 * n_prompt, gflops_per_s=20.0, value=n_prompt,
        most_bytes_ratio=2.0, architecture="sparse",
    )
    for n_prompt in (16, 1)
    for kind in (RowKind.PREFILL, RowKind.DECODE)
]  # fmt: skip


def test_routed_experts_are_a_group_for_each_architecture_with_ranges() -> None:
    """Prefills are joined by prompt; the more bytes, the lower the intensity; without routing it is certain."""
    prefill, decode = sweep_groups(run_of(ROUTED), "moe", ROUTED)
    assert (prefill.label, prefill.kind, prefill.x) == ("sparse", "prefill", pytest.approx((4.0, 64.0)))
    assert prefill.least_x == pytest.approx((2.0, 32.0))
    assert prefill.most_x == pytest.approx((4.0, 64.0))
    assert (prefill.is_joined, decode.is_joined) == (True, False)
    rows = phases("scenario", "siso", 1.0)
    assert {group.least_x for group in sweep_groups(run_of(rows), "scenario", rows)} == {None}
    rows = phases("base", "siso", 1.0)
    assert place_of(run_of(rows).point(rows[1])) == pytest.approx((2.0, 10e9))


PUBLISHED = ("board", Roof(peak_flops_per_s=512e9, bandwidth_bytes_per_s=34.1e9))


def test_measured_and_published_roofs_are_told_apart() -> None:
    """Each with its name and ridge; only the measured one has points, and the roof of their arithmetic."""
    chart = devices_chart([run_of(phases("base", "siso", 1.0))], [PUBLISHED])
    (panel,) = chart.panels
    main = [roof for roof in panel.roofs if roof.role is RoofRole.MAIN]
    assert [(roof.label, roof.is_measured) for roof in main] == [
        ("host, 2 threads, ridge 10.00", True),
        ("board, ridge 15.01", False),
    ]
    assert {group.label for group in panel.groups} == {main[0].label}
    assert chart.title == "Ridges lie between 10.00 FLOP/byte (host, 2 threads) and 15.01 (board)"
    assert chart.note == "host, 2 threads, llama.cpp 1, 2026-03-01; thin broken roofs as published"
    (panel,) = devices_chart([run_of(phases("base", "siso", 1.0))], []).panels
    (side,) = (roof for roof in panel.roofs if roof.role is RoofRole.SIDE)
    assert side.label == "host, 2 threads, int8, 400 GFLOP/s"


SCENARIOS = run_of((*phases("scenario", "siso", 1.0), *phases("scenario", "liso", 0.5)))


def test_points_lie_where_the_run_places_them() -> None:
    """FLOP/byte along x, GFLOP/s along y, by setting and kind."""
    (panel,) = sweep_chart(SCENARIOS, "scenario").panels
    places = {(group.label, group.kind): (*group.x, *group.y) for group in panel.groups}
    assert places == {
        ("siso", "prefill"): pytest.approx((100.0, 200.0)),
        ("siso", "decode only"): pytest.approx((2.0, 10.0)),
        ("siso", "whole run"): pytest.approx((8.0, 40.0)),
        ("liso", "prefill"): pytest.approx((100.0, 100.0)),
        ("liso", "decode only"): pytest.approx((2.0, 5.0)),
        ("liso", "whole run"): pytest.approx((8.0, 20.0)),
    }


def test_the_classical_roof_is_the_main_one() -> None:
    """32-bit arithmetic over memory; other arithmetic and caches are beside it, and the note tells all."""
    (panel,) = sweep_chart(SCENARIOS, "scenario").panels
    (main,) = (roof for roof in panel.roofs if roof.role is RoofRole.MAIN)
    assert main.x[1] == pytest.approx(10.0)
    assert main.y[1:] == pytest.approx((100.0, 100.0))
    assert main.y[0] == pytest.approx(10.0 * main.x[0])
    beside = [roof.label for roof in panel.roofs if roof.role is RoofRole.SIDE]
    assert beside == ["int8, 400 GFLOP/s", "to 64.0 KiB:\n200 GB/s", "to 256 KiB:\n100 GB/s"]
    note = sweep_chart(SCENARIOS, "scenario").note
    assert note.startswith("host, 2 threads, llama.cpp 1, 2026-03-01; FP32 100 GFLOP/s over memory at 10.0 GB/s")
    assert "below int8" in note


@pytest.mark.parametrize(("type_name", "ridge"), [("q8_0", 40.0), ("f32", 10.0)])
def test_the_region_is_below_the_roof_that_the_points_have(type_name: str, ridge: float) -> None:
    """Quantised weights are multiplied as integers, floats are not; both ridges are marked."""
    rows = [row("scenario", "siso", RowKind.DECODE, intensity=2.0, gflops_per_s=9.0, type_name=type_name)]
    (panel,) = sweep_chart(run_of(rows), "scenario").panels
    assert panel.region is not None
    assert panel.region.memory.x[1] == panel.region.compute.x[0] == pytest.approx(ridge)
    assert {round(each.x) for each in panel.ridges} == {10, round(ridge)}


def operators(n: int) -> tuple[RooflinePanel, str]:
    """The panel and title of `n` operators of decode, each slower than the one before, and one of prefill."""
    of_decode = [
        row(
            *("scenario", "siso", RowKind.OPERATOR),
            role=f"decode/op{place}",
            intensity=2.0,
            gflops_per_s=10.0 / (1.0 + place),
        )
        for place in range(n)
    ]
    of_prefill = row(*("scenario", "siso", RowKind.OPERATOR), role="prefill/ffn", intensity=100.0, gflops_per_s=100.0)
    chart = operators_chart(run_of((*of_decode, of_prefill)))
    (panel,) = chart.panels
    return panel, chart.title


def test_the_ten_operators_that_take_the_most_time_are_named() -> None:
    """An operator of decode counts once for every token, so that of prefill, though slower than a step, is left out."""
    panel, title = operators(12)
    texts = {group.label: [text for text in group.texts if text] for group in panel.groups}
    assert texts == {"decode": [f"op{place}" for place in range(2, 12)], "prefill": []}
    assert title.startswith("op11 of decode takes ")
