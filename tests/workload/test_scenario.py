from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.scenario import Scenario, find_scenario, scenario_names


def test_the_four_classes_are_named() -> None:
    """Short and long input and output give four scenarios, the short one first."""
    assert scenario_names()[:4] == ("siso", "liso", "silo", "lilo")
    siso, lilo = find_scenario("siso"), find_scenario("lilo")
    assert (siso.n_prompt, siso.n_gen, siso.n_depth) == (64, 24, 0)
    assert (lilo.n_prompt, lilo.n_gen, lilo.n_ctx) == (512, 128, 640)


def test_the_classes_have_lengths_of_real_use_as_well() -> None:
    """The long forms of the four classes are longer in each respect, and short and long differ by 16 and 8 times."""
    assert scenario_names()[4:] == ("siso-long", "liso-long", "silo-long", "lilo-long")
    found = {name: find_scenario(name) for name in scenario_names()}
    assert {name: (each.n_prompt, each.n_gen) for name, each in found.items() if name.endswith("-long")} == {
        "siso-long": (128, 128),
        "liso-long": (2048, 128),
        "silo-long": (128, 1024),
        "lilo-long": (2048, 1024),
    }
    for name in scenario_names()[:4]:
        longer = found[f"{name}-long"]
        assert longer.n_prompt > found[name].n_prompt
        assert longer.n_gen > found[name].n_gen
        assert longer.n_depth == 0


def test_every_class_says_where_its_lengths_come_from() -> None:
    """RooflineBench names the classes and gives no lengths; both sets say so in their own way."""
    sources = {find_scenario(name).source for name in scenario_names()}
    assert len(sources) == 2
    assert all("RooflineBench" in source for source in sources)
    assert "the paper gives no lengths" in find_scenario("lilo-long").source


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_lengths_can_be_given_in_the_name(n_prompt: int, n_gen: int, n_depth: int) -> None:
    """A name of lengths gives the scenario of those lengths, under that name."""
    name = f"p{n_prompt}-g{n_gen}-d{n_depth}"
    found = find_scenario(name)
    assert (found.name, found.n_prompt, found.n_gen, found.n_depth) == (name, n_prompt, n_gen, n_depth)


def test_depth_may_be_left_out() -> None:
    """Without a depth the cache begins empty."""
    assert find_scenario("p128-g16").n_depth == 0


@pytest.mark.parametrize("name", ["SISO", "siso_long", "long", "p128", "p-1-g2", "p1-g2x", ""])
def test_unknown_names_are_refused(name: str) -> None:
    """Any other name is refused with what is accepted."""
    with pytest.raises(PerfsuiteError, match=r"is unknown; accepted are siso, .*lilo-long and lengths such as"):
        find_scenario(name)


def test_nothing_to_run_is_refused() -> None:
    """A scenario without a single token, or with a negative length, is refused."""
    with pytest.raises(PerfsuiteError, match="expected at least one token"):
        find_scenario("p0-g0")
    with pytest.raises(PerfsuiteError, match="n_gen is -1, expected an integer of 0 or more"):
        Scenario(name="odd", n_prompt=1, n_gen=-1, source="test")
