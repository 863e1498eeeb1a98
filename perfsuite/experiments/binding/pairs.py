"""Compares two engines beneath the installed llama-cpp-python, in pairs of processes that take turns."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.experiments.binding.overhead import BindingSide, side_of
from perfsuite.experiments.engine_runs import lost_events
from perfsuite.experiments.pairs import lost_of, other_outputs_of, paired_judgements, too_few
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupWitness
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.measure.engine import other_declaration
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.plan import BindingPlan, LlamaPlan
from perfsuite.measure.schedule import Payload, Series, pair_complaint
from perfsuite.records.binding import ITL, TTFT, Door
from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.verdict.allowance import step_margin_ratio
from perfsuite.verdict.judge_pairs import NO_EXPECTATION
from perfsuite.verdict.outputs import OutputErrors, output_errors
from perfsuite.verdict.pairs import Pairs, Suite, verdicts_at


@dataclass(frozen=True, slots=True, kw_only=True)
class SidesTaken:
    """What both sides of a pair took."""

    old: BindingSide
    new: BindingSide
    #: What others took of the new side, less what they took of the old one, as `lost_by_case` has it, of all turns.
    lost: float
    #: How far the outputs of the two lie apart.
    output_errors: OutputErrors

    @classmethod
    def of(cls, payloads: Sequence[Payload]) -> SidesTaken:
        """Reduce what two processes have sent."""
        old, new = map(side_of, payloads)
        errors = output_errors(old.engine, new.engine)
        of_old, of_new = lost_of(payloads)[Phase.END_TO_END]
        return cls(old=old, new=new, lost=of_new - of_old, output_errors=errors)


def refuse_other_engine(config: RunConfig) -> None:
    """Raise MeasurementError where the old engine was not made for the declarations that the binding has."""
    assert config.old is not None
    if other := other_declaration(config.old.engine, config.engine):
        raise MeasurementError(f"its llama.h declares {other} otherwise than this binding does")


def measure_sides(
    config: RunConfig,
    plans: tuple[LlamaPlan, LlamaPlan],
    cases: Sequence[Case],
    margins: Mapping[str, float],
    progress: ProgressLine,
    *,
    n_pairs: int,
    n_turns: int,
) -> tuple[GroupSamples, list[SidesTaken]]:
    """Compare an old and a new plan by so many pairs; return also what each of them took.

    Raises MeasurementError: a worker of either side fails.
    """
    order, leaders = random.Random(), cycle(random.sample((0, 1), 2))
    witness = GroupWitness(config=config, group="binding", what="pairs beneath llama-cpp-python", progress=progress)

    def take() -> Sequence[Payload]:
        seed = order.randrange(2**31)
        drawn: Any = tuple(
            BindingPlan(llama=replace(with_drawn_layout(each, order), seed=seed), has_sentinels=False) for each in plans
        )
        return config.board.run_in_turns(drawn, n_turns=n_turns, leader=next(leaders))

    series = Series(take=take, complain=pair_complaint, keep=SidesTaken.of, witness=witness)
    with series.broken_off(by_failure=False):
        series.extend(n_pairs)
    taken = list(series.valid)
    lost = lost_events(side.engine for both in taken for side in (both.old, both.new))
    differing, other_problems = other_outputs_of(config, taken)
    problems = (*other_problems, *too_few(series), *filter(None, (lost,)), *config.board.held().problems)
    sides = _sides(cases, taken)
    verdicts = verdicts_at(
        sides,
        _margins(config, cases, margins, sides, taken),
        Suite(),
        share_ratio=1.0,
        lost={case_id: [both.lost for both in taken] for case_id in sides},
    )
    judgements = paired_judgements(
        cases,
        sides,
        verdicts,
        margins,
        lambda case: problems,
        lambda case: NO_EXPECTATION,
        step_share_ratio=config.step_share_ratio,
    )
    group = witness.taken(series)
    return replace(group, judgements=judgements, notes=(*differing, *group.notes)), taken


def _sides(cases: Sequence[Case], taken: Sequence[SidesTaken]) -> Pairs:
    """Return what both sides took, ns, of each case that every process measured."""
    found = {}
    for case in cases:
        old, new = (
            tuple(side.samples_ns.get(case.role or "", 0) for side in taken_side)
            for taken_side in ([both.old for both in taken], [both.new for both in taken])
        )
        if taken and all((*old, *new)):
            found[case.case_id] = old, new
    return found


def _margins(
    config: RunConfig, cases: Sequence[Case], margins: Mapping[str, float], sides: Pairs, taken: Sequence[SidesTaken]
) -> dict[str, float]:
    """Return the change that passes in each case, a share of its prompt or token where that is more."""
    olds = [both.old for both in taken]
    steps_ns = {
        phase: median(old.samples_ns[f"{Door.COMPLETION.value}/{whole}"] for old in olds)
        for phase, whole in ((Phase.PREFILL, TTFT), (Phase.DECODE, ITL))
        if olds and all(f"{Door.COMPLETION.value}/{whole}" in old.samples_ns for old in olds)
    }
    return {
        case.case_id: step_margin_ratio(
            case,
            margins[case.case_id],
            case_ns=median(sides[case.case_id][0]) if case.case_id in sides else 0.0,
            steps_ns=steps_ns,
            share_ratio=config.step_share_ratio,
        )
        for case in cases
    }
