from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.scenario import Scenario, find_scenario, scenario_names


def test_the_four_classes_are_named() -> None:
    """Short and long input and output give four scenarios, the short one first."""
    assert scenario_names() == ("siso", "liso", "silo", "lilo")
    siso, lilo = find_scenario("siso"), find_scenario("lilo")
    assert (siso.n_prompt, siso.n_gen, siso.n_depth) == (64, 24, 0)
    assert (lilo.n_prompt, lilo.n_gen, lilo.n_ctx) == (512, 128, 640)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_lengths_can_be_given_in_the_name(n_prompt: int, n_gen: int, n_depth: int) -> None:
    """A name of lengths gives the scenario of those lengths, under that name."""
    name = f"p{n_prompt}-g{n_gen}-d{n_depth}"
    found = find_scenario(name)
    assert (found.name, found.n_prompt, found.n_gen, found.n_depth) == (name, n_prompt, n_gen, n_depth)


def test_depth_may_be_left_out() -> None:
    """Without a depth the cache begins empty."""
    assert find_scenario("p128-g16").n_depth == 0


@pytest.mark.parametrize("name", ["SISO", "p128", "p-1-g2", "p1-g2x", ""])
def test_unknown_names_are_refused(name: str) -> None:
    """Any other name is refused with what is accepted."""
    with pytest.raises(PerfsuiteError, match="is unknown; accepted are siso, liso, silo, lilo and lengths such as"):
        find_scenario(name)


def test_nothing_to_run_is_refused() -> None:
    """A scenario without a single token, or with a negative length, is refused."""
    with pytest.raises(PerfsuiteError, match="expected at least one token"):
        find_scenario("p0-g0")
    with pytest.raises(PerfsuiteError, match="n_gen is -1, expected an integer of 0 or more"):
        Scenario(name="odd", n_prompt=1, n_gen=-1, source="test")
