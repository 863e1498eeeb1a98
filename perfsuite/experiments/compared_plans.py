"""Two plans of the engine compared in pairs, outside of pytest: judged by the same rules, for a budget of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, Profile
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.pairs import (
    Pair,
    lone_cases,
    lone_sides,
    lost_by_case,
    outputs_problem,
    pair_series,
    pairs_by_case,
    weighty_cases,
)
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Witness
from perfsuite.records.case import Case
from perfsuite.records.outcome import LEAST_PAIRS, Judgement
from perfsuite.verdict.attribution import carrier_of
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.pairs import Pairs, Suite, compare_in_looks

_TOO_FEW = "too few pairs without competition"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSetup:
    """What all comparisons on a device share."""

    profile: Profile
    cases: tuple[Case, ...]
    #: By case id.
    margins: Mapping[str, float]
    budget_s: float

    @classmethod
    def of(cls, workload: LlamaWorkload, profile: Profile, budget_s: float) -> ComparisonSetup:
        """Compare all phases and operators of a workload, each with the margin of the device."""
        cases = (*phase_cases(workload), *operator_cases(workload))
        margins = {case.case_id: profile.margin_ratio.get(case.kind, DEFAULT_MARGIN_RATIO) for case in cases}
        return cls(profile=profile, cases=cases, margins=margins, budget_s=budget_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """What a comparison gave."""

    judgements: tuple[Judgement, ...]
    pairs: tuple[Pair, ...]
    n_discarded: int
    duration_s: float

    @property
    def carrier(self) -> str | None:
        """The role whose REGRESSED operators lost the most."""
        return carrier_of(self.judgements)


def compare_plans(
    setup: ComparisonSetup, plans: tuple[LlamaPlan, LlamaPlan], board: Board, witness: Witness | None = None
) -> ComparedPlans:
    """Take pairs of an old and a new plan until the questions are decided, or the time is up; judge them.

    Raises MeasurementError: a process fails, or others have most of the device.
    """
    series = pair_series(board, plans, witness=witness, budget_s=setup.budget_s)

    def collect(n_pairs: int, is_extra: bool) -> Pairs:
        return pairs_by_case(setup.cases, series.extend(n_pairs, is_extra=is_extra))

    verdicts = compare_in_looks(
        collect,
        setup.margins,
        Suite.of(setup.cases),
        lost=lambda: lost_by_case(setup.cases, series.valid),
        is_worth_it=lambda case_id: case_id in weighty_cases(setup.cases, series.valid),
        n_affordable=lambda: series.n_affordable,
    )
    duration_s = series.elapsed_s
    cases = (*setup.cases, *lone_cases(setup.cases, series.valid))
    sides = {**pairs_by_case(cases, series.valid), **lone_sides(cases, series.valid)}
    problems = (*outputs_problem(series.valid), *(() if len(series.valid) >= LEAST_PAIRS else (_TOO_FEW,)))
    return ComparedPlans(
        judgements=tuple(
            judge_pairs(
                case,
                sides.get(case.case_id, ((), ())),
                verdicts.get(case.case_id),
                margin_ratio=setup.margins.get(case.case_id, 0.0),
                problems=problems,
            )
            for case in cases
        ),
        pairs=tuple(series.valid),
        n_discarded=len(series.complaints),
        duration_s=round(duration_s, 3),
    )
