"""What people see of a sweep."""

from __future__ import annotations

from perfsuite.experiments.shapes.command_sweep_tables import sweep_answer
from perfsuite.experiments.shapes.sweep_expected import expected_sweep
from perfsuite.testing.shape_meters import SimulatedMeters
from tests.command_streams import Streams, printed
from tests.synthetic_shape_sweep import bmm_setting, staircase, swept

QUIET = SimulatedMeters(time_ns=staircase(64), sigma=0.0)


def rows_of(out: str) -> list[list[str]]:
    """The words of each line."""
    return [row.split() for row in out.splitlines()]


def test_the_best_and_the_worst_sizes_are_told(capsys: Streams) -> None:
    """Three each, with their interval and the model's efficiency."""
    out = printed(sweep_answer(swept(bmm_setting(), QUIET)), capsys)
    assert "useful FLOP/s over the best of its whole tiles; lower quartile of 15 rounds\n" in out
    rows = rows_of(out)
    assert ["best", "64", "128", "µs", "128", "µs", "to", "128", "µs", "1.000", "1.000"] in rows
    assert ["worst", "1", "128", "µs", "128", "µs", "to", "128", "µs", "0.016", "0.016"] in rows
    assert sum(row[:1] in (["best"], ["worst"]) for row in rows) == 6
    assert "rank correlation with the model: 1.000 of efficiencies; 1.000 of times, where a straight line" in out


def test_of_many_steps_the_highest_are_told(capsys: Streams) -> None:
    """Sixteen of 63, in the order of their sizes."""
    out = printed(sweep_answer(swept(bmm_setting(tile=8), SimulatedMeters(time_ns=staircase(8), sigma=0.0))), capsys)
    assert "steps, found from the times alone; the 16 highest of 63\n" in out
    sizes = [int(row[0]) for row in rows_of(out) if row[-4:] == ["a", "multiple", "of", "8"]]
    assert len(sizes) == 16
    assert sizes == sorted(sizes)


def test_a_step_elsewhere_is_told_as_such(capsys: Streams) -> None:
    """At 48 there is no tile of 64; without a tile nothing is said of it."""
    meters = SimulatedMeters(time_ns=staircase(48), sigma=0.0)
    out = printed(sweep_answer(swept(bmm_setting(), meters)), capsys)
    assert ["48", "96.0", "µs", "+100.0", "%", "no", "multiple", "of", "64"] in rows_of(out)
    out = printed(sweep_answer(swept(bmm_setting(tile=None), meters)), capsys)
    assert ["48", "96.0", "µs", "+100.0", "%"] in rows_of(out)
    assert "useful FLOP/s over the best of all sizes" in out


def test_what_is_not_known_is_a_dash(capsys: Streams) -> None:
    """No tile has no model's efficiency."""
    out = printed(sweep_answer(swept(bmm_setting(range(1, 9), tile=None), QUIET)), capsys)
    row = next(row for row in rows_of(out) if row[:2] == ["best", "8"])
    assert row[-2:] == ["1.000", "-"]


def test_times_without_a_rank_are_left_out(capsys: Streams) -> None:
    """Below one tile the model's times are all alike."""
    out = printed(sweep_answer(swept(bmm_setting(range(1, 41)), QUIET)), capsys)
    assert "rank correlation with the model: 1.000 of efficiencies\n" in out


def test_the_model_alone_has_no_sizes(capsys: Streams) -> None:
    """Its mean, and no device."""
    assert printed(sweep_answer(expected_sweep(bmm_setting())), capsys) == (
        "bmm n1:512 b32 m1 k128 f32, tile 64, vector 8\n\nmean efficiency: 0.833 model\n"
        "The model alone: 0.833 of the padded work is of use\n"
    )
