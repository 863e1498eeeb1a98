"""The pictures of a roofline, and what they tell."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.point import Roof
from perfsuite.expectation.roofline.roofline_run import Row, RowKind
from perfsuite.records.chart import LineRole, XYPanel
from perfsuite.report.roofline_charts import devices_chart, operators_chart, sweep_chart, sweep_finding

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
    (panel,) = sweep_chart(run_of(ROUTED), "moe").panels
    _, prefill, decode = panel.groups
    assert (prefill.label, prefill.kind, prefill.x) == ("sparse", "prefill", pytest.approx((4.0, 64.0)))
    assert (decode.label, decode.kind) == ("sparse", "decode only")
    joined, *ranges = [line.x for line in panel.lines if not line.label]
    assert joined == prefill.x
    assert ranges[:2] == [pytest.approx((2.0, 4.0)), pytest.approx((32.0, 64.0))]
    rows = phases("scenario", "siso", 1.0)
    assert all(line.label for line in sweep_chart(run_of(rows), "scenario").panels[0].lines)


def test_settings_that_are_numbers_are_written_at_the_ends() -> None:
    rows = [row("depth", str(n), RowKind.DECODE, intensity=2.0, gflops_per_s=9.0, value=n) for n in (8, 2, 4)]
    _, group = sweep_chart(run_of(rows), "depth").panels[0].groups
    assert (group.label, group.kind, group.texts) == ("decode only", "", ("2 layers", "", "8 layers"))


PUBLISHED = ("board", Roof(peak_flops_per_s=512e9, bandwidth_bytes_per_s=34.1e9))


def test_measured_and_published_roofs_are_told_apart() -> None:
    """Each with its name and ridge; only the measured one has points, and the roof of their arithmetic."""
    chart = devices_chart(run_of(phases("base", "siso", 1.0)), [PUBLISHED])
    (panel,) = chart.panels
    main = [roof.label for roof in panel.lines if roof.role is LineRole.CURVE]
    assert main == ["host, 2 threads, ridge 10.00", "board, ridge 15.01"]
    assert {group.label for group in panel.groups} == {main[0]}
    assert chart.title == "Ridges lie between 10.00 FLOP/byte (host, 2 threads) and 15.01 (board)"
    assert chart.note == "host, 2 threads, llama.cpp 1, 2026-03-01; roofs without points as published"
    (panel,) = devices_chart(run_of(phases("base", "siso", 1.0)), []).panels
    (side,) = (roof for roof in panel.lines if roof.role is LineRole.FAINT)
    assert side.label == "host, 2 threads, int8, 400 GFLOP/s"


SCENARIOS = run_of((*phases("scenario", "siso", 1.0), *phases("scenario", "liso", 0.5)))


def test_points_lie_where_the_run_places_them() -> None:
    """FLOP/byte along x, GFLOP/s along y, by setting and kind."""
    (panel,) = sweep_chart(SCENARIOS, "scenario").panels
    places = {(group.label, group.kind): (*group.x, *group.y) for group in panel.groups[1:]}
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
    (main,) = (roof for roof in panel.lines if roof.label == "FP32 over memory")
    assert main.x[1] == pytest.approx(10.0)
    assert main.y[1:] == pytest.approx((100.0, 100.0))
    assert main.y[0] == pytest.approx(10.0 * main.x[0])
    beside = [roof.label for roof in panel.lines if roof.role is LineRole.FAINT and "decade" not in roof.label]
    assert beside == ["int8, 400 GFLOP/s", "to 64.0 KiB: 200 GB/s", "to 256 KiB: 100 GB/s"]
    note = sweep_chart(SCENARIOS, "scenario").note
    assert note.startswith("host, 2 threads, llama.cpp 1, 2026-03-01; FP32 100 GFLOP/s over memory at 10.0 GB/s")
    assert "below int8" in note


@pytest.mark.parametrize(("type_name", "ridge"), [("q8_0", 40.0), ("f32", 10.0)])
def test_the_region_is_below_the_roof_that_the_points_have(type_name: str, ridge: float) -> None:
    """Quantised weights are multiplied as integers, floats are not; both ridges are marked."""
    rows = [row("scenario", "siso", RowKind.DECODE, intensity=2.0, gflops_per_s=9.0, type_name=type_name)]
    (panel,) = sweep_chart(run_of(rows), "scenario").panels
    memory, arithmetic = (line for line in panel.lines if line.low_y)
    assert memory.x[1] == arithmetic.x[0] == pytest.approx(ridge)
    assert {round(x) for x in panel.groups[0].x} == {10, round(ridge)}


def operators(n: int) -> tuple[XYPanel, str]:
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
    texts = {group.label: [text for text in group.texts if text] for group in panel.groups[1:]}
    assert texts == {"decode": [f"op{place}" for place in range(2, 12)], "prefill": []}
    assert title.startswith("op11 of decode takes ")


PREFILL, DECODE, WHOLE_RUN = RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN


def finding(sweep: str, *rows: Row) -> str:
    return sweep_finding(sweep, run_of(rows), rows)


def test_shares_are_those_of_the_points() -> None:
    """The finding names the roof where both limits occur; so does a sweep with too few rows for a sentence."""
    rows = phases("base", "siso", 1.0)
    assert finding("base", *rows) == (
        "Prefill runs at 50 % of what arithmetic allows, decode runs at 50 % of what memory allows"
    )
    wider = (*rows, *phases("base", "liso", 0.5))
    assert "decode runs at 25 to 50 % of what memory allows" in finding("base", *wider)
    both = [row("base", "a", PREFILL, intensity=oi, gflops_per_s=20.0) for oi in (4.0, 400.0)]
    assert finding("base", *both) == "Prefill runs at 5 to 50 % of what the roof allows"
    one = row("threads", "2", DECODE, intensity=2.0, gflops_per_s=10.0)
    assert finding("threads", one) == "Decode runs at 50 % of what memory allows"


DEEP = row("depth", "64", DECODE, intensity=2.0, gflops_per_s=12.0, value=64.0)
SHALLOW = row("depth", "2", DECODE, intensity=2.0, gflops_per_s=10.0, value=2.0)
NOISY = row("depth", "64", DECODE, intensity=2.0, gflops_per_s=12.0, value=64.0, spread_ratio=0.3)
DEPTHS = "From 2 to 64 layers decode goes from 10.0 GFLOP/s to 12.0 GFLOP/s"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [
                row("precision", name, DECODE, intensity=at, gflops_per_s=5.0)
                for name, at in (("f16", 1.0), ("q8_0", 1.9))
            ],
            "Decode's operational intensity in FLOP/byte is 1.00 with F16, 1.90 with Q8_0",
        ),
        (
            [
                row("attention", name, DECODE, intensity=2.0, gflops_per_s=at)
                for name, at in (("mha", 9.0), ("gqa", 11.0))
            ],
            "Decode has the highest rate with GQA (11.0 GFLOP/s) and the lowest with MHA (9.00 GFLOP/s)",
        ),
        (
            [*phases("threads", "2", 1.0), *phases("threads", "1", 0.5, n_threads=1)],
            "With 2 threads instead of 1 prefill is 2.00 times as fast, decode is 2.00 times as fast",
        ),
        (
            [row("moe", "a", PREFILL, intensity=9.0, gflops_per_s=9.0, most_bytes_ratio=at) for at in (3.0, 1.5)],
            "Routing leaves prefill's operational intensity open by up to 3.00 times (small, 64 tokens)",
        ),
        (
            [row("length", str(n), PREFILL, intensity=n, gflops_per_s=n / 2.0, value=n) for n in (64, 16, 128)],
            "From 64 tokens arithmetic limits prefill; prefill runs at 5 to 16 % of what the roof allows",
        ),
        (
            [
                row("scenario", name, WHOLE_RUN, intensity=at, gflops_per_s=rate)
                for name, at, rate in (("siso", 4.0, 20.0), ("lilo", 8.0, 40.0), ("liso", 80.0, 399.0))
            ],
            "Of whole runs: LILO is nearest to the ridge of the 2 that memory limits; arithmetic limits LISO only",
        ),
        ([DEEP, SHALLOW], DEPTHS),
        ([NOISY, SHALLOW], f"{DEPTHS} (within the spread)"),
    ],
    ids=["precision", "attention", "threads", "moe", "length", "scenario", "depth", "within-spread"],
)
def test_each_sweep_has_a_sentence_of_its_own(rows: list[Row], told: str) -> None:
    """In whatever order its rows are; what regimes do not share is not compared."""
    assert finding(rows[0].sweep, *rows) == told


@pytest.mark.parametrize(("sweep", "noun"), [("kv", "a KV cache of"), ("flash", "flash attention")])
def test_settings_of_one_workload_are_compared_by_time(sweep: str, noun: str) -> None:
    rows = [row(sweep, name, DECODE, intensity=2.0, gflops_per_s=rate) for name, rate in (("a", 8.0), ("b", 12.0))]
    assert finding(sweep, *rows) == f"A token takes 1.50 times as long with {noun} a as with b"
