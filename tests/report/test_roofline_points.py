"""Points of a run in groups."""

from __future__ import annotations

import pytest

from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.report.roofline_points import place_of, sweep_groups

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
    """In order of the prompt; the more bytes are read, the lower the intensity. Prefills are joined."""
    prefill, decode = sweep_groups(run_of(ROUTED), "moe", ROUTED)
    assert (prefill.label, prefill.kind, prefill.x) == ("sparse", "prefill", pytest.approx((4.0, 64.0)))
    assert prefill.least_x == pytest.approx((2.0, 32.0))
    assert prefill.most_x == pytest.approx((4.0, 64.0))
    assert (prefill.is_joined, decode.is_joined) == (True, False)


def test_without_experts_there_are_no_ranges() -> None:
    """The intensity is certain."""
    rows = phases("scenario", "siso", 1.0)
    assert {group.least_x for group in sweep_groups(run_of(rows), "scenario", rows)} == {None}


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
    """Where the setting alone would not say what it is of."""
    rows = phases(sweep, setting, 1.0)
    assert {group.label for group in sweep_groups(run_of(rows), sweep, rows)} == {label}


def test_a_point_has_a_place() -> None:
    """Its intensity and its rate, in base units."""
    rows = phases("base", "siso", 1.0)
    assert place_of(run_of(rows).point(rows[1])) == pytest.approx((2.0, 10e9))
