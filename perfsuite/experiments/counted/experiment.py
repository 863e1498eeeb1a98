"""Counts the run's workload once, and judges every count by what was committed, or by its formula."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.counted_ratios import CountedRatios, RoleWork, known_ratios, role_works
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.counted.counting_run import count_workload, own_processor
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.records.case import COUNTED, REST_ROLE, Case
from perfsuite.records.counts import METRICS, CountedWork, counts_path, read_counts, write_counts
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.verdict.counted import BLIND_TO, CountChange, beside_time, count_changes, judge_count
from perfsuite.workload.scenario import find_scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCount:
    """One count of an operator, and what its formula lets expect."""

    case_id: str
    count: int
    expected: float
    #: What it may differ by.
    margin: float
    #: What its formula says, in `unit`: FLOPs, or bytes.
    formula: int
    unit: str

    @property
    def ratio(self) -> float:
        return self.count / self.expected

    @property
    def is_finding(self) -> bool:
        """Whether it does more than its formula lets expect; what does less costs nobody anything."""
        return self.count - self.expected > self.margin

    @property
    def told(self) -> str:
        """Such as ``2.54 instructions a FLOP, expected 1.46 ± 0.02``."""
        noun = self.case_id.rpartition("/")[2].replace("_", " ")
        found, expected, margin = (each / self.formula for each in (self.count, self.expected, self.margin))
        return f"{found:.3g} {noun} a {self.unit}, expected {expected:.3g} ± {margin:.1g}"


def expected_counts(
    counted: CountedWork, workload: LlamaWorkload, ratios: CountedRatios | None = None
) -> dict[str, ExpectedCount]:
    """Return what is expected of each count of an operator, by the id of its case; the ratios are the committed ones.

    Nothing is expected of another compiler or processor than the ratios hold for, of whole phases, and of operators
    that no ratio is known of.
    """
    known = ratios or known_ratios()
    if not known.holds_for(counted):
        return {}
    found = (each for work in role_works(workload) for each in _of_role(work, counted, known))
    return {each.case_id: each for each in found}


def _of_role(work: RoleWork, counted: CountedWork, ratios: CountedRatios) -> Iterator[ExpectedCount]:
    cost, counts = work.cost, counted.counts
    formulas = {
        "instructions": (cost.flops, "FLOP") if cost.flops else (cost.moved_bytes, "byte moved"),
        "bytes_read": (cost.read_bytes, "byte of the formula"),
        "bytes_written": (cost.written_bytes, "byte of the formula"),
    }
    for metric, (formula, unit) in formulas.items():
        name = f"{work.phase.value}/{work.role}/{metric}"
        expected = ratios.expected(work.terms, metric)
        if name in counts and expected is not None:
            yield ExpectedCount(
                case_id=f"{COUNTED}/{counted.prefix}/{name}",
                count=counts[name],
                expected=expected[0],
                margin=expected[1],
                formula=formula,
                unit=unit,
            )


#: Tokens that are counted beside times at most: more of them take minutes, and say the same of each operator.
_MOST_PROMPT, _MOST_GEN = 16, 4


def open_experiments(config: RunConfig, *_: object) -> tuple[Experiment, ...]:
    """Return the experiment of ``--device=counted`` and ``--perf-counts``."""
    workload = config.workload
    if config.profile.counts_for is None:
        scenario = workload.scenario
        short = f"p{min(scenario.n_prompt, _MOST_PROMPT)}-g{min(scenario.n_gen, _MOST_GEN)}"
        workload = replace(workload, scenario=find_scenario(short))
    processor = config.profile.counts_for or own_processor()
    path = counts_path(config.baseline_dir, processor, workload.prefix)
    is_asked = config.baseline_mode == "compare" and config.counts_old is None
    return (
        CountedExperiment(
            config=config,
            workload=workload,
            processor=processor,
            path=path,
            before=read_counts(path) if is_asked and path.exists() else None,
        ),
    )


@dataclass(kw_only=True)
class CountedExperiment(Experiment):
    """What one run of the workload does, against what it did."""

    config: RunConfig
    #: What is counted: the run's, or a shorter one beside times.
    workload: LlamaWorkload
    #: Whose work it is.
    processor: str
    #: Where the baseline lies.
    path: Path
    #: What is compared with: the baseline, or the old side once that was counted.
    before: CountedWork | None
    now: CountedWork | None = None
    #: By the ids of the cases.
    found: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, CountChange] = field(default_factory=dict)
    kind: str = COUNTED
    is_timed: bool = False

    def cases(self) -> Iterator[Case]:
        """Enumerate the counts of the baseline, and those that the workload is expected to have; instructions first."""
        workload = self.workload
        operators = (case for case in operator_cases(workload) if case.role != REST_ROLE)
        expected = (
            f"{case.case_id.removeprefix(f'{case.kind}/{workload.prefix}/')}/{metric}"
            for case in (*phase_cases(workload), *operators)
            for metric in METRICS
        )
        kept = () if self.before is None else self.before.counts
        names = dict.fromkeys((*kept, *expected))
        for name in sorted(names, key=lambda name: METRICS.index(name.rpartition("/")[2])):
            yield Case(case_id=f"{COUNTED}/{workload.prefix}/{name}", kind=COUNTED)

    def n_steps(self, case_ids: Collection[str]) -> int:
        return (1 if self.config.counts_old is None else 2) if case_ids else 0

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        if self.config.counts_old is not None:
            self.before = self._counted(self.config.counts_old, progress)
        self.now = self._counted(self.config.counts or None, progress)
        self.found = {f"{COUNTED}/{self.now.prefix}/{name}": count for name, count in self.now.counts.items()}
        if self.before is not None:
            try:
                self.changes = count_changes(self.before, self.now)
            except MeasurementError as error:
                raise MeasurementError(f"{self.path}: {error}") from None

    def _counted(self, llama: str | None, progress: ProgressLine) -> CountedWork:
        progress.step("counted work")
        return count_workload(self.workload, llama, self.processor, self.config.cache_dir, progress.show)

    def judge(self, case_id: str, reason: str) -> Judgement:
        if case_id in self.changes:
            return judge_count(self.changes[case_id])
        count = self.found.get(case_id)
        if count is None:
            lack = reason if self.now is None else "the engine has no such phase or operator here"
            return told_judgement(case_id, COUNTED, Outcome.INVALID, lack)
        noun = case_id.rpartition("/")[2].replace("_", " ")
        told = f"{count:,} {noun}; there is nothing in {self.path} to judge it by"
        return told_judgement(case_id, COUNTED, Outcome.NEW, told)

    def remark(self, case: Case, outcome: Outcome) -> str:
        """Say whether what takes another time does other work."""
        if case.kind not in ("phase", "operator") or case.phase is None:
            return ""
        name = f"{case.phase.value}/{case.role}" if case.role else case.phase.value
        ids = (f"{COUNTED}/{self.workload.prefix}/{name}/{metric}" for metric in METRICS)
        found = [self.changes[case_id] for case_id in ids if case_id in self.changes]
        return beside_time(outcome, found) if found else ""

    def keep(self) -> bool:
        if self.now is not None:
            write_counts(self.path, self.now)
        return self.now is not None

    def notes(self) -> tuple[str, ...]:
        """Say what the counts are of and cannot see, which have no case, and what does more than its formula says."""
        if self.now is None:
            return ()
        notes = [f"counted: {self.now.llama}, {self.now.compiler}, {self.now.processor}; {BLIND_TO}"]
        cases = {case.case_id for case in self.cases()}
        unknown = {case_id.rpartition("/")[0]: None for case_id in self.found if case_id not in cases}
        if unknown:
            notes.append(f"no case yet for {', '.join(unknown)}; keep them with --baseline=record")
        expected = expected_counts(self.now, self.workload).values()
        notes += [f"{each.case_id}: more than its formula says: {each.told}" for each in expected if each.is_finding]
        return tuple(notes)
