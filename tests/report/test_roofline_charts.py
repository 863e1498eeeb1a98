"""The pictures of a roofline run."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
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


@pytest.mark.parametrize(
    ("sweep", "setting", "label"),
    [
        ("precision", "q8_0", "q8_0"),
        ("kv", "q4_0", "KV cache of q4_0"),
        ("flash", "off", "flash attention off"),
        ("threads", "2", "2 threads"),
    ],
)
def test_settings_are_told_in_words(sweep: str, setting: str, label: str) -> None:
    rows = phases(sweep, setting, 1.0)
    assert {group.label for group in sweep_groups(run_of(rows), sweep, rows)} == {label}


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
    chart = devices_chart([], [PUBLISHED])
    assert chart.panels[0].groups == ()
    assert chart.title == "board: the ridge lies at 15.01 FLOP/byte"
    with pytest.raises(PerfsuiteError, match="there is no device"):
        devices_chart([], [])


def test_what_no_sweep_varies_stands_for_a_device() -> None:
    rows = (*phases("depth", "2", 1.0), *phases("scenario", "siso", 0.5))
    for extra, rate in (((), 5.0), (phases("base", "siso", 0.25), 2.5)):
        (panel,) = devices_chart([run_of((*rows, *extra))], []).panels
        (decode,) = (group for group in panel.groups if group.kind == "decode only")
        assert decode.y == pytest.approx((rate,))


SCENARIOS = run_of((*phases("scenario", "siso", 1.0), *phases("scenario", "liso", 0.5)))
DEPTHS = run_of((*phases("depth", "8", 1.0, value=8.0), *phases("depth", "2", 0.5, value=2.0)))


def test_points_lie_where_the_run_places_them_inside_the_axes() -> None:
    """FLOP/byte along x, GFLOP/s along y, by setting and kinds asked for; other sweeps are refused."""
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
    (panel,) = sweep_chart(SCENARIOS, "scenario", kinds=(RowKind.DECODE,)).panels
    assert {group.kind for group in panel.groups} == {"decode only"}
    chart = sweep_chart(SCENARIOS, "scenario")
    (panel,) = chart.panels
    points = [each for group in panel.groups for each in zip(group.x, group.y, strict=True)]
    for x, y in (*points, *((ridge.x, ridge.y) for ridge in panel.ridges)):
        assert chart.x_axis.least is not None
        assert chart.x_axis.most is not None
        assert chart.x_axis.least < x < chart.x_axis.most
        assert chart.y_axis.least is not None
        assert chart.y_axis.most is not None
        assert chart.y_axis.least < y < chart.y_axis.most
    with pytest.raises(PerfsuiteError, match=r"sweep is 'kv', this run has scenario$"):
        sweep_chart(SCENARIOS, "kv")


def test_depth_is_a_scale_of_colours() -> None:
    chart = sweep_chart(DEPTHS, "depth")
    (panel,) = chart.panels
    assert chart.shade_axis is not None
    assert chart.shade_axis.label == "layers"
    assert [(group.label, group.shades) for group in panel.groups] == [
        ("prefill", (2.0, 8.0)),
        ("decode only", (2.0, 8.0)),
        ("whole run", (2.0, 8.0)),
    ]


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


def test_other_numbers_of_threads_have_roofs_of_their_own() -> None:
    rows = (*phases("threads", "1", 0.5, n_threads=1), *phases("threads", "2", 1.0))
    (panel,) = sweep_chart(run_of(rows), "threads").panels
    (one,) = (roof for roof in panel.roofs if "1 thread" in roof.label)
    assert one.label == "int8, 1 thread, 200 GFLOP/s"
    assert one.y[-1] == pytest.approx(200.0)
    assert {group.label for group in panel.groups} == {"1 thread", "2 threads"}


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
    with pytest.raises(PerfsuiteError, match="has no operators; record them"):
        operators_chart(SCENARIOS)
