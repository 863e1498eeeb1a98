"""Performs one trial of a certification on the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from perfsuite.device.profile import Profile
from perfsuite.expectation.cases import Case
from perfsuite.experiments.certificate.certificate import INJECTED_PHASES, CaseAnswer, Trial, Truth
from perfsuite.experiments.certificate.peers import PEERS, PeerSamples
from perfsuite.experiments.pairs import Pair, pair_series, pairs_by_case, weighty_cases
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Witness
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.verdict.attribution import carrier_of
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.sequential import STANDARD_DESIGN, Pairs, compare_sequentially

_TOO_FEW = "too few pairs without competition"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSetup:
    """What all trials of a certification share."""

    plan: LlamaPlan
    profile: Profile
    cases: tuple[Case, ...]
    #: By case id.
    margins: Mapping[str, float]
    budget_s: float


def run_trial(setup: TrialSetup, truth: Truth, board: Board) -> Trial:
    """Compare the plan with itself, the new side slowed down as `truth` says, and keep what is answered."""
    with _background_load(board, setup.plan.n_threads if truth.is_loaded else 0) as load:
        series = pair_series(
            board,
            (setup.plan, _slowed(setup.plan, truth)),
            setup.profile,
            witness=load,
            budget_s=setup.budget_s,
        )

        def collect(n_pairs: int) -> Pairs:
            return pairs_by_case(setup.cases, series.extend(n_pairs))

        def is_worth_it(case_id: str) -> bool:
            return case_id in weighty_cases(setup.cases, series.valid)

        verdicts = compare_sequentially(
            collect, setup.margins, may_go_on=series.may_screen, may_confirm=series.may_confirm, is_worth_it=is_worth_it
        )
        duration_s = series.elapsed_s
    sides = pairs_by_case(setup.cases, series.valid)
    problems = () if len(series.valid) >= STANDARD_DESIGN.screen_looks[0] else (_TOO_FEW,)
    judgements = [
        judge_pairs(
            case,
            sides.get(case.case_id, ((), ())),
            verdicts.get(case.case_id),
            margin_ratio=setup.margins[case.case_id],
            problems=problems,
        )
        for case in setup.cases
    ]
    return Trial(
        truth=truth,
        answers={each.case_id: _answer(each) for each in judgements},
        n_pairs=len(series.valid),
        n_discarded=len(series.complaints),
        duration_s=round(duration_s, 3),
        carrier=carrier_of(judgements),
        peer_alarms=peer_alarms(series.valid),
        samples_ns={
            phase: (
                [pair.old.phase_ns[Phase(phase)] for pair in series.valid],
                [pair.new.phase_ns[Phase(phase)] for pair in series.valid],
            )
            for phase in INJECTED_PHASES
        },
    )


def peer_alarms(pairs: Sequence[Pair]) -> dict[str, dict[str, bool]]:
    """Return what the rules of other tools say of the same processes, by rule and phase."""
    samples = {
        phase: PeerSamples(
            old=tuple(pair.old_repetitions_ns[Phase(phase)] for pair in pairs),
            new=tuple(pair.new_repetitions_ns[Phase(phase)] for pair in pairs),
        )
        for phase in INJECTED_PHASES
        if pairs
    }
    return {peer.name: {phase: peer.alarms(each) for phase, each in samples.items()} for peer in PEERS}


def _slowed(plan: LlamaPlan, truth: Truth) -> LlamaPlan:
    return replace(
        plan,
        inject_phases=INJECTED_PHASES if truth.phase_ratio else (),
        inject_phase_ratio=truth.phase_ratio,
        inject_op=truth.operator,
        inject_ratio=truth.operator_ratio,
    )


def _answer(judgement: Judgement) -> CaseAnswer:
    return CaseAnswer(
        outcome=Outcome(judgement.outcome),
        change_ratio=judgement.change_ratio,
        smallest_effect_ratio=judgement.smallest_effect_ratio,
    )


@dataclass
class _Load(Witness):
    """Busy loops on the board, one a thread of the engine, that begin half way to the first look."""

    board: Board
    n_processes: int
    has_begun: bool = False

    def before(self, n_valid: int) -> None:
        """Begin the load when it is time."""
        if n_valid >= STANDARD_DESIGN.screen_looks[0] // 2 and self.n_processes and not self.has_begun:
            self.has_begun = True
            self.board.set_load(self.n_processes)


@contextmanager
def _background_load(board: Board, n_processes: int) -> Iterator[_Load]:
    load = _Load(board=board, n_processes=n_processes)
    try:
        yield load
    finally:
        if load.has_begun:
            board.set_load(0)
