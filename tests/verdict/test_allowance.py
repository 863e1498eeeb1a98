"""What a comparison with stored times can resolve, and that what is stated to be resolved is."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.case import Case, Expectation
from perfsuite.records.events import Phase
from perfsuite.records.outcome import CaseSamples, Judgement, Outcome
from perfsuite.verdict.allowance import (
    DEFAULT_RESOLUTION_RATIO,
    Allowance,
    StepShare,
    resolution_ratio,
    step_margin_ratio,
    step_share,
)
from perfsuite.verdict.compare import BaselineMatch, judge
from perfsuite.verdict.significance import Change, compare_sessions

STEPS_NS = {Phase.PREFILL: 1e8, Phase.DECODE: 1e7}


def case(kind: str, phase: Phase | None) -> Case:
    return Case(case_id="x", kind=kind, phase=phase, role=None)


@pytest.mark.parametrize(
    ("kind", "phase", "step"),
    [
        ("operator", Phase.DECODE, Phase.DECODE),
        ("operator", Phase.PREFILL, Phase.PREFILL),
        ("engine_kernel", Phase.DECODE, Phase.DECODE),
        ("phase", Phase.EMBEDDING, Phase.PREFILL),
        ("phase", Phase.SAMPLING, Phase.DECODE),
        ("phase", Phase.DECODE, None),
        ("phase", Phase.LOAD, None),
        ("kernel", None, None),
    ],
)
def test_a_case_has_a_share_of_its_step(kind: str, phase: Phase | None, step: Phase | None) -> None:
    found = step_share(case(kind, phase), steps_ns=STEPS_NS, share_ratio=0.002)
    assert found == (None if step is None else StepShare(step=step, step_ns=STEPS_NS[step], share_ratio=0.002))


def test_the_larger_of_margin_and_share_passes() -> None:
    """0.2 % of 10 ms are 20 us: 200 % of a case of 10 us; decode stands in for a step that was not measured."""

    def passes(case_ns: float, share_ratio: float = 0.002) -> float:
        operator = case("operator", Phase.DECODE)
        return step_margin_ratio(operator, 0.05, case_ns=case_ns, steps_ns=STEPS_NS, share_ratio=share_ratio)

    assert passes(1e4) == pytest.approx(2.0)
    assert passes(1e6) == passes(1e4, 0.0) == passes(0.0) == 0.05
    embedding = case("phase", Phase.EMBEDDING)
    found = step_share(embedding, steps_ns={Phase.DECODE: 1e7}, share_ratio=0.002)
    assert found is not None
    assert found.step is Phase.DECODE
    assert step_share(embedding, steps_ns={}, share_ratio=0.002) is None


Session = tuple[int, ...]
Draw = Callable[[np.random.Generator], Session]

N_TRIALS = 2000

#: What the host's profile says that two sessions differ by, which an unchanged one exceeds once in a hundred.
SPREAD_RATIO = 0.15

#: So small that the spread alone decides.
MARGIN_RATIO = 0.001


def drawing(between: float, within: float, n_samples: int = 10) -> Draw:
    """Sessions whose medians have one deviation (of the logarithm), and the samples of each another."""

    def draw(generator: np.random.Generator) -> Session:
        logs = generator.normal(0.0, between) + generator.normal(0.0, within, n_samples)
        return tuple(round(1e6 * each) for each in np.exp(logs))

    return draw


def judged(stored: tuple[Session, ...], new: Session, most_ratio: float = math.inf) -> Judgement:
    """Judge a session by stored ones, with a resolution of any size unless one is given."""
    return judge(
        CaseSamples(case_id="phase/a/b/decode", samples_ns=new, problems=()),
        kind="phase",
        expectation=Expectation(),
        baseline=BaselineMatch(sessions_ns=stored),
        allowed=Allowance(
            margin_ratio=MARGIN_RATIO, session_spread_ratio=SPREAD_RATIO, most_resolution_ratio=most_ratio
        ),
    )


def at_least(share: float) -> float:
    """A share that fewer of the trials than one in a thousand fall short of, where the true one is as given."""
    return share + NormalDist().inv_cdf(0.001) * math.sqrt(share * (1.0 - share) / N_TRIALS)


#: Two sessions of a device whose spread is what it says: by the 99th percentile of their difference, 15 %.
AS_STATED = math.log1p(SPREAD_RATIO) / NormalDist().inv_cdf(0.99) / math.sqrt(2.0)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("n_sessions", "draw", "most_ratio"),
    [
        pytest.param(1, drawing(AS_STATED, 0.03), DEFAULT_RESOLUTION_RATIO, id="the default spread for 1 session"),
        pytest.param(1, drawing(AS_STATED, 0.2), math.inf, id="samples that differ by more than sessions"),
        pytest.param(5, drawing(0.03, 0.01), math.inf, id="5 sessions"),
        pytest.param(12, drawing(0.02, 0.03), math.inf, id="12 sessions"),
    ],
)
def test_what_is_said_to_be_resolved_is(n_sessions: int, draw: Draw, most_ratio: float) -> None:
    """A slowdown of what is stated is found in 95 %, and passes in 1 %; no change passes in 95 %, and fails in 1 %."""
    generator = np.random.default_rng(n_sessions)
    unchanged: list[Outcome] = []
    slowed: list[Outcome] = []
    for _ in range(N_TRIALS):
        stored, new = tuple(draw(generator) for _ in range(n_sessions)), draw(generator)
        same = judged(stored, new, most_ratio)
        assert same.resolution_ratio is not None
        unchanged.append(same.outcome)
        slower = tuple(round(sample * (1.0 + same.resolution_ratio)) for sample in new)
        slowed.append(judged(stored, slower, most_ratio).outcome)
    assert slowed.count(Outcome.REGRESSED) / N_TRIALS >= at_least(0.95)
    assert 1.0 - slowed.count(Outcome.PASS) / N_TRIALS >= at_least(0.99)
    assert (unchanged.count(Outcome.PASS) + unchanged.count(Outcome.IMPROVED)) / N_TRIALS >= at_least(0.95)
    assert 1.0 - unchanged.count(Outcome.REGRESSED) / N_TRIALS >= at_least(0.99)


def test_a_spread_that_is_more_than_stated_is_found_out() -> None:
    """The trials above are no formality: sessions that differ by twice the stated spread raise too many alarms."""
    generator = np.random.default_rng(0)
    draw = drawing(2.0 * AS_STATED, 0.03)
    alarms = sum(judged((draw(generator),), draw(generator)).outcome is Outcome.REGRESSED for _ in range(N_TRIALS))
    assert 1.0 - alarms / N_TRIALS < at_least(0.99)


@given(st.floats(0.5, 2.0), st.integers(1, 9))
def test_the_estimate_does_not_matter(factor: float, n_sessions: int) -> None:
    """The resolution is one of the spread: a run that is slower by any factor has the same."""
    stored = [(1000.0 + 7.0 * place, 1010.0 + 3.0 * place) for place in range(n_sessions)]
    there, here = (
        resolution_ratio(compare_sessions(stored, new, default_spread_ratio=SPREAD_RATIO), n_sessions=n_sessions)
        for new in ((1000.0, 1020.0), (1000.0 * factor, 1020.0 * factor))
    )
    assert here == pytest.approx(there)


def test_the_resolution_is_that_of_the_formula() -> None:
    change = Change(estimate_ratio=1.0, lower_ratio=1.0 / 1.15, upper_ratio=1.15)
    assert resolution_ratio(change, n_sessions=1) == pytest.approx(1.15**1.7071 - 1.0, abs=1e-4)
    assert resolution_ratio(change, n_sessions=5) == pytest.approx(1.15 ** (1 + 2.1318 / 3.7469) - 1.0, abs=1e-4)
    near, far = Change(estimate_ratio=1.0, lower_ratio=0.9, upper_ratio=1.05), 1.0 / 0.9
    even = Change(estimate_ratio=1.0, lower_ratio=0.9, upper_ratio=far)
    assert resolution_ratio(near, n_sessions=1) == pytest.approx(resolution_ratio(even, n_sessions=1))
