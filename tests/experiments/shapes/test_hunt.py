"""What a hunt does with each shape, and Hypothesis' settings of it."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from perfsuite.experiments.shapes.bounds import SizeRange
from perfsuite.experiments.shapes.hunt import Hunt, ShapeFailure, hunt_settings
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.experiments.shapes.strategies import shape_cases
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import ShapeCase


@dataclass
class FakeJudge:
    """Judges by the size of k alone, and notes what it was asked."""

    slow_above: int = 10**9
    verdicts: list[ShapeVerdict] = field(default_factory=list)

    def judge(self, property: ShapeProperty, case: ShapeCase) -> ShapeVerdict:
        k = case.shape.of("k")
        outcome = Outcome.REGRESSED if k > self.slow_above else Outcome.PASS
        verdict = ShapeVerdict(
            property=property,
            case_id=case.case_id,
            outcome=outcome,
            reason=f"k is {k}",
            ratio=1.0 + k / 1000.0,
        )
        self.verdicts.append(verdict)
        return verdict


def hunted(judge: FakeJudge, *, until_s: float = math.inf) -> Hunt:
    """Hunt among GEMVs, and return the hunt; what it raises is raised."""
    cases = shape_cases(Operation.GEMV, types=("f32",), bounds={"k": SizeRange(least=1, most=300)})
    hunt = Hunt(bound=ShapeProperty.PADDING, cases=cases, judge=judge, until_s=until_s)

    @seed(3)
    @settings(hunt_settings(), max_examples=60)
    @given(data=st.data())
    def test(data: st.DataObject) -> None:
        hunt.example(data)

    with contextlib.suppress(ShapeFailure):
        test()
    return hunt


def test_when_the_time_is_up_nothing_new_is_measured() -> None:
    judge = FakeJudge(slow_above=1)
    hunt = hunted(judge, until_s=-math.inf)
    assert (judge.verdicts, hunt.failing) == ([], None)
    assert hunt.n_left_out >= 60


def test_shrinking_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(10**6))
    monkeypatch.setattr("perfsuite.experiments.shapes.hunt.time.monotonic", lambda: next(now))
    hunt = hunted(FakeJudge(slow_above=99), until_s=30)
    assert hunt.failing is not None
    assert hunt.failing.case_id == "shape/tiled/gemv/n1-k100/f32/tile8-vector1"


def test_what_is_judged_already_is_judged_in_any_case() -> None:
    told = hunted(FakeJudge()).judged
    judge = FakeJudge(verdicts=list(told))
    hunt = hunted(judge, until_s=-math.inf)
    assert set() < {each.case_id for each in hunt.judged} <= {each.case_id for each in told}
