"""What carries the time that a phase lost."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.attribution import Attribution, UniformShift
from perfsuite.report.page.charts.attribution_bars import attribution_figures
from perfsuite.testing.run_files import synthetic_run


def test_the_parts_add_up_to_the_whole() -> None:
    """The bars of the carriers and what is left over are together the bar of the phase."""
    found = list(attribution_figures(synthetic_run()))
    assert found
    for figure in found:
        whole, *rest = (row["lost"] for row in figure.spec["data"]["values"])
        assert abs(whole - sum(rest)) <= 1e-3 * abs(whole)


def test_a_shift_of_all_alike_is_no_operators_fault() -> None:
    """Where the whole run moved, no carrier is shown."""
    run = synthetic_run()
    shift = UniformShift(ratio=1.2, n_cases=50)
    assert not list(attribution_figures(replace(run, attribution=replace(run.attribution, uniform_shift=shift))))


def test_a_run_that_lost_nothing_has_no_bars() -> None:
    """Nor a figure."""
    assert not list(attribution_figures(replace(synthetic_run(n_cases=7), attribution=Attribution())))
