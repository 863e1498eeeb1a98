"""Certifies a device: trials with a known right answer, and what they say of the verdicts and of the peers' rules."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.experiments.certificate.peers import PEERS, PeerSamples
from perfsuite.experiments.pairs import ComparisonSetup, EnginePair, compare_plans
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Witness
from perfsuite.records.codec import (
    Amount,
    Count,
    Number,
    content_of,
    from_plain,
    in_one_line,
    parse_json,
    plain_fields,
    to_plain,
)
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.pairs import LOOKS

#: Raised whenever a field changes its meaning.
SCHEMA = 1

_TODO = "move the file away and certify anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was done to the new side."""

    #: Share by which the phases `prefill` and `decode` were slowed down, both at once; 0 is an A/A trial.
    phase_ratio: Number = 0.0
    #: The operator that was slowed down (a role, or a type as ggml spells it), and by which share.
    operator: str | None = None
    operator_ratio: Number = 0.0
    #: Whether a background load was switched on half way to the first look.
    is_loaded: bool = False

    @property
    def is_same(self) -> bool:
        return not self.phase_ratio and not self.operator_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """What was stated of one case in one trial."""

    outcome: Outcome
    #: New over old; None where nothing was measured.
    change_ratio: Number | None
    smallest_effect_ratio: Number | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one comparison answered, and how much it took."""

    truth: Truth
    answers: Mapping[str, CaseAnswer]
    n_pairs: Count
    n_discarded: Count
    duration_s: Amount
    #: Role of the operator that lost the most time, by the attribution; None where none did.
    carrier: str | None
    #: By peer and phase: whether its rule alarms on the same samples.
    peer_alarms: Mapping[str, Mapping[str, bool]]
    #: By phase: old and new samples, ns, pair by pair.
    samples_ns: Mapping[str, Sequence[Sequence[Count]]]


def append_trial(path: Path, trial: Trial) -> None:
    """Add a trial to a file of trials, one line each.

    Raises `MeasurementError`: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"schema": SCHEMA, **to_plain(trial)}) + "\n")
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from error


def read_trials(path: Path) -> tuple[Trial, ...]:
    """Read a file of trials; one that does not exist has none, and a last line that was cut is left out.

    Raises `MeasurementError`: a line is no trial of this schema.
    """
    if not os.path.lexists(path):
        return ()
    lines = content_of(path, MeasurementError, _TODO).split(b"\n")[:-1]
    return tuple(_trial(f"{path}:{number}: is not a trial", line) for number, line in enumerate(lines, 1))


def _trial(where: str, line: bytes) -> Trial:
    try:
        plain = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise MeasurementError(f"{where} ({in_one_line(error)}); {_TODO}") from error
    return from_plain(plain, Trial, where, MeasurementError, _TODO, schema=SCHEMA, is_closed=True)


#: The phases whose verdicts stand for a slowdown of the engine.
INJECTED_PHASES = ("prefill", "decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`k` of `n`, with one-sided Clopper-Pearson bounds at 95 %."""

    n: int
    k: int
    ratio: float | None
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """How often a slowdown of one size was found."""

    #: Phases pooled.
    all: Rate
    by_phase: Mapping[str, Rate]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRates:
    """The same rates for another tool's rule, on the same samples; for the phases prefill and decode."""

    name: str
    false_alarms: Rate
    power: Mapping[str, Power]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRates:
    """What A/A trials say of one case."""

    false_alarms: Rate
    passes: Rate
    #: The median of the smallest slowdown that a trial could have shown; None where none had enough pairs.
    smallest_effect_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a device's verdicts are worth."""

    #: Comparisons of single cases in A/A trials that were REGRESSED, and whole trials with any such case.
    false_alarms: Rate
    false_improvements: Rate
    suite_false_alarms: Rate
    #: The same for prefill and decode alone: what the peers are compared with.
    phase_false_alarms: Rate
    #: Share of comparisons in A/A trials that were decided as PASS.
    passes: Rate
    #: By share of the slowdown, such as ``0.05``.
    power: Mapping[str, Power]
    #: Trials in which the injected operator was named as the carrier, of those with one.
    attributions: Rate
    #: Comparisons REGRESSED in A/A trials with a background load.
    loaded_false_alarms: Rate
    #: Trials that competition spoilt as a whole.
    n_invalid: int
    mean_pairs: float | None
    mean_duration_s: float | None
    longest_duration_s: float | None
    #: By phase: the median of the smallest slowdown that an A/A trial could have shown.
    smallest_effect_ratio: Mapping[str, float]
    #: A/A trials by case id.
    by_case: Mapping[str, CaseRates]
    peers: tuple[PeerRates, ...]

    def to_plain(self) -> dict[str, Any]:
        """Return JSON-able values; the power of a share has the counts of both phases, and `by_phase` below them."""
        plain = asdict(self)
        for each in (plain, *plain["peers"]):
            each["power"] = {
                share: {**power["all"], "by_phase": power["by_phase"]} for share, power in each["power"].items()
            }
        return plain


def certificate(trials: Sequence[Trial]) -> Certificate:
    """Tally trials; A/A trials under a background load count for themselves only.

    A comparison that was INVALID is no comparison: it is counted in no rate but that of the load, for which it is a
    right answer.
    """
    judged = [trial for trial in trials if trial.truth.is_loaded or _was_judged(trial)]
    same = [trial for trial in judged if trial.truth.is_same and not trial.truth.is_loaded]
    by_operator = [trial for trial in judged if trial.truth.operator]
    loaded = [trial for trial in judged if trial.truth.is_loaded]
    effects = {phase: _median_effect(_answers(same, phase)) for phase in INJECTED_PHASES}
    return Certificate(
        false_alarms=_outcome_rate(same, Outcome.REGRESSED),
        false_improvements=_outcome_rate(same, Outcome.IMPROVED),
        suite_false_alarms=_rate(
            any(answer.outcome is Outcome.REGRESSED for answer in trial.answers.values()) for trial in same
        ),
        phase_false_alarms=_power(same, _is_found).all,
        passes=_outcome_rate(same, Outcome.PASS),
        power=_powers(judged, _is_found),
        attributions=_rate(trial.carrier == trial.truth.operator for trial in by_operator),
        loaded_false_alarms=_outcome_rate(loaded, Outcome.REGRESSED),
        n_invalid=len(trials) - len(judged),
        mean_pairs=mean(trial.n_pairs for trial in same) if same else None,
        mean_duration_s=mean(trial.duration_s for trial in same) if same else None,
        longest_duration_s=max((trial.duration_s for trial in judged if not trial.truth.is_loaded), default=None),
        smallest_effect_ratio={phase: effect for phase, effect in effects.items() if effect is not None},
        by_case={id_: _case_rates(same, id_) for id_ in dict.fromkeys(id_ for trial in same for id_ in trial.answers)},
        peers=tuple(_peer(name, judged, same) for name in dict.fromkeys(n for t in judged for n in t.peer_alarms)),
    )


def clopper_pearson(k: int, n: int) -> tuple[float, float]:
    """Return the lower and upper bounds of a rate, each one-sided at 95 %; 0 and 1 without any trial."""
    if n == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest  # late, for its import takes longer than most commands

    interval = binomtest(k, n).proportion_ci(confidence_level=0.9, method="exact")
    return float(interval.low), float(interval.high)


def _rate(hits: Iterable[bool]) -> Rate:
    found = list(hits)
    n, k = len(found), sum(found)
    lower, upper = clopper_pearson(k, n)
    return Rate(n=n, k=k, ratio=k / n if n else None, lower=lower, upper=upper)


def _was_judged(trial: Trial) -> bool:
    return any(answer.outcome is not Outcome.INVALID for answer in trial.answers.values())


def _outcome_rate(trials: Sequence[Trial], outcome: Outcome) -> Rate:
    return _rate(answer.outcome is outcome for trial in trials for answer in trial.answers.values())


def _answers(trials: Sequence[Trial], phase: str) -> list[CaseAnswer]:
    """Return what was stated of a phase itself, where it was measured."""
    found = (pair for trial in trials for pair in trial.answers.items())
    return [answer for case_id, answer in found if case_id.startswith("phase/") and case_id.endswith(f"/{phase}")]


def _is_found(trial: Trial, phase: str) -> bool:
    return any(answer.outcome is Outcome.REGRESSED for answer in _answers([trial], phase))


def _powers(trials: Sequence[Trial], found: Callable[[Trial, str], bool]) -> dict[str, Power]:
    shares = sorted({trial.truth.phase_ratio for trial in trials} - {0.0})
    return {f"{share:g}": _power([t for t in trials if t.truth.phase_ratio == share], found) for share in shares}


def _power(trials: Sequence[Trial], found: Callable[[Trial, str], bool]) -> Power:
    return Power(
        all=_rate(found(trial, phase) for trial in trials for phase in INJECTED_PHASES),
        by_phase={phase: _rate(found(trial, phase) for trial in trials) for phase in INJECTED_PHASES},
    )


def _case_rates(same: Sequence[Trial], case_id: str) -> CaseRates:
    answers = [trial.answers[case_id] for trial in same if case_id in trial.answers]
    return CaseRates(
        false_alarms=_rate(each.outcome is Outcome.REGRESSED for each in answers),
        passes=_rate(each.outcome is Outcome.PASS for each in answers),
        smallest_effect_ratio=_median_effect(answers),
    )


def _median_effect(answers: Iterable[CaseAnswer]) -> float | None:
    effects = [each.smallest_effect_ratio for each in answers if each.smallest_effect_ratio is not None]
    return median(effects) if effects else None


def _peer(name: str, trials: Sequence[Trial], same: Sequence[Trial]) -> PeerRates:
    def alarms(trial: Trial, phase: str) -> bool:
        return trial.peer_alarms.get(name, {}).get(phase, False)

    return PeerRates(name=name, false_alarms=_power(same, alarms).all, power=_powers(trials, alarms))


def run_trial(plan: LlamaPlan, comparison: ComparisonSetup, truth: Truth, board: Board) -> Trial:
    """Compare the plan with itself, the new side slowed down as `truth` says, and keep what is answered."""
    slowed = replace(
        plan,
        inject_phases=INJECTED_PHASES if truth.phase_ratio else (),
        inject_phase_ratio=truth.phase_ratio,
        inject_op=truth.operator,
        inject_ratio=truth.operator_ratio,
    )
    load = _Load(board=board, n_processes=plan.n_threads if truth.is_loaded else 0)
    try:
        compared = compare_plans(comparison, (plan, slowed), board, load)
    finally:
        if load.has_begun:
            board.set_load(0)
    pairs, phases = compared.pairs, {phase: Phase(phase) for phase in INJECTED_PHASES}
    return Trial(
        truth=truth,
        answers={
            each.case_id: CaseAnswer(**plain_fields(each, "outcome", "change_ratio", "smallest_effect_ratio"))
            for each in compared.judgements
        },
        n_pairs=len(pairs),
        n_discarded=compared.n_discarded,
        duration_s=compared.duration_s,
        carrier=compared.carrier,
        peer_alarms=_peer_alarms(pairs),
        samples_ns={
            name: ([pair.old.phase_ns[phase] for pair in pairs], [pair.new.phase_ns[phase] for pair in pairs])
            for name, phase in phases.items()
        },
    )


def _peer_alarms(pairs: Sequence[EnginePair]) -> dict[str, dict[str, bool]]:
    samples = {
        phase: PeerSamples(
            old=tuple(pair.old_repetitions_ns[Phase(phase)] for pair in pairs),
            new=tuple(pair.new_repetitions_ns[Phase(phase)] for pair in pairs),
        )
        for phase in INJECTED_PHASES
        if pairs
    }
    return {peer: {phase: alarms(each) for phase, each in samples.items()} for peer, alarms in PEERS.items()}


@dataclass
class _Load(Witness):
    """Busy loops on the board, one a thread of the engine, that begin half way to the first look."""

    board: Board
    n_processes: int
    has_begun: bool = False

    def before(self, n_valid: int) -> None:
        if n_valid >= LOOKS[0][0] // 2 and self.n_processes and not self.has_begun:
            self.has_begun = True
            self.board.set_load(self.n_processes)
