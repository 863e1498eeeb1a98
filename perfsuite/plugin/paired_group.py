"""Measures the engine in pairs, old side against new, once for all phase and operator cases of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfsuite.expectation.cases import Case
from perfsuite.plugin.llama_group import GraphProblems, graph_problems, llama_fingerprint, run_plan
from perfsuite.plugin.options import RunConfig
from perfsuite.plugin.progress import ProgressLine
from perfsuite.plugin.replicates import GroupSamples
from perfsuite.records.judgement import Judgement
from perfsuite.verdict.judge_pairs import judge_pairs
from perfsuite.verdict.pairs import PairRun, pairs_by_case, weighty_cases
from perfsuite.verdict.sequential import STANDARD_DESIGN, Pairs, compare_sequentially


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedGroup:
    """What a paired comparison gave."""

    group: GroupSamples
    judgements: Mapping[str, Judgement]


def measure_pairs(
    config: RunConfig, cases: Sequence[Case], margins: Mapping[str, float], progress: ProgressLine
) -> PairedGroup:
    """Compare `config` with its old side, and judge each case by the margin of its id."""
    assert config.old is not None
    run = PairRun(
        plans=(run_plan(config.old), run_plan(config)),
        profile=config.profile,
        budget_s=config.budget_s,
        extra_environment=config.opencl.environment() if config.opencl else {},
        announce=lambda _: progress.step("pairs of llama.cpp"),
    )

    def collect(n_pairs: int) -> Pairs:
        progress.extend_to(n_pairs)
        return pairs_by_case(cases, run.extend(n_pairs))

    def is_worth_it(case_id: str) -> bool:
        return case_id in weighty_cases(cases, run.pairs)

    verdicts = compare_sequentially(collect, margins, may_go_on=run.may_extend, is_worth_it=is_worth_it)
    sides = pairs_by_case(cases, run.pairs)
    wrong = _problems(config, run)
    return PairedGroup(
        group=_group(config, run),
        judgements={
            case.case_id: judge_pairs(
                case,
                sides.get(case.case_id, ((), ())),
                verdicts.get(case.case_id),
                margin_ratio=margins[case.case_id],
                problems=(*_too_few(run), *wrong.get((case.phase, case.role), ())),
            )
            for case in cases
        },
    )


def _too_few(run: PairRun) -> tuple[str, ...]:
    """Complain where competition left fewer pairs than the first look needs."""
    if len(run.pairs) >= STANDARD_DESIGN.screen_looks[0]:
        return ()
    seen = f"{run.complaints[-1]} in {len(run.complaints)} of {len(run.complaints) + len(run.pairs)} pairs"
    return (f"{seen}; free the machine and run again",)


def _problems(config: RunConfig, run: PairRun) -> GraphProblems:
    return graph_problems(config, run.first_records[1:]) if run.first_records else {}


def _group(config: RunConfig, run: PairRun) -> GroupSamples:
    version = run.first_records[1].engine_version if run.first_records else "unknown"
    assert config.old is not None
    return GroupSamples(
        samples={},
        fingerprint=llama_fingerprint(config, version),
        peak_rss_bytes=run.peak_rss_bytes or None,
        n_discarded=len(run.complaints),
        description=f"{version}, build {config.engine.build_id}, against {config.old_text}"
        f" (build {config.old.engine.build_id})",
    )
