"""``perfsuite bisect``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import EngineRun, engine_run, named_weights
from perfsuite.cli.progress import Progress, progress
from perfsuite.cli.run_options import add_answer, add_shared, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.profile.search import user_folder
from perfsuite.errors import EngineError, MeasurementError, PerfsuiteError
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.forecast import expect
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.workload_request import WorkloadRequest
from perfsuite.experiments.bisect.build_pairs import BuildPairs
from perfsuite.experiments.pairs import ComparisonSetup, compare_plans
from perfsuite.experiments.said_graphs import with_engine_graphs
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.ceiling_store import best_of_board, measured_ceilings
from perfsuite.measure.engine import Engine
from perfsuite.records.case import Case, named_case
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.units import format_change, format_count
from perfsuite.verdict.attribution import phase_attributions
from perfsuite.verdict.change_search import ChangePoint, ChangeSearch, Searched, UnusableBuildError
from perfsuite.workload.scenario import find_scenario

#: Time for the operators of the two builds between which something changed, s.
_CARRIER_BUDGET_S = 60.0

_ABOUT = """
Builds are named as for 'perfsuite compare', oldest first. OLD..NEW means OLD and the later revisions up to NEW, along
the first parents. Builds that do not compile or run are left out. Only --stretches finds changes that cancel each
other.
"""

_EXAMPLES = {
    "perfsuite bisect v1.0..my-branch --source ../llama.cpp --case=prefill": "which commit made prefill slower?",
    "perfsuite bisect 0.3.16 0.3.22 0.3.28 0.3.36": "which release made decode slower?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A change, in words."""

    point: ChangePoint
    before: str
    after: str
    #: Builds between that cannot be measured.
    between: tuple[str, ...]
    #: Operators that carry it.
    carriers: tuple[str, ...]

    @property
    def odds(self) -> str:
        """The chance that it lies elsewhere."""
        return f"1 in {max(1.0, 1.0 / max(self.point.wrong_ratio, 1e-6)):,.0f}"

    @property
    def interval(self) -> str:
        """How much, with bounds."""
        point = self.point
        return (
            f"{format_change(point.ratio)} ({format_change(point.lower_ratio)} to {format_change(point.upper_ratio)})"
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {
            "before": self.before,
            "after": self.after,
            "between": list(self.between),
            "change_ratio": self.point.ratio,
            "change_lower_ratio": self.point.lower_ratio,
            "change_upper_ratio": self.point.upper_ratio,
            "wrong_ratio": self.point.wrong_ratio,
            "carriers": list(self.carriers),
        }


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "bisect",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="builds, into the cache",
        exits={1: "the pairs did not decide", 10: "the first and the last build do not differ"},
        see=("docs/how-to/find-the-change.md",),
    )
    parser.set_defaults(device="host", opencl_platform=None)
    parser.add_argument("builds", nargs="+", metavar="BUILD", help="two builds or more, oldest first; or OLD..NEW")
    parser.add_argument("--source", type=Path, metavar="DIR", help="checkout of the revisions")
    text = "shell command that builds a revision, with shared libraries"
    parser.add_argument("--build", metavar="COMMAND", help=text)
    subject = add_subject(parser, "model", "scenario", "threads")
    add_shared(subject, *("ubatch-size", "cache-type-k", "cache-type-v", "lora-rank", "parallel", "draft", "mmproj"))
    text = "phase, PHASE/OPERATOR, or end of a case id (default decode; embedding models: embed)"
    subject.add_argument("--case", metavar="CASE", help=text)
    effort = effort_group(parser)
    text = "smallest change to look for, below 0.5 (default 0.01)"
    effort.add_argument("--least", type=float, default=0.01, metavar="RATIO", help=text)
    text = "how often the wrong build may be named, a ratio below 0.5 (default 0.05)"
    effort.add_argument("--wrong", type=float, default=0.05, metavar="RATIO", help=text)
    text = "stretches to search separately (default 1)"
    effort.add_argument("--stretches", type=int, default=1, metavar="N", help=text)
    text = "most pairs for one comparison (default 120)"
    effort.add_argument("--pairs", type=int, default=120, metavar="N", help=text)
    add_answer(parser)
    parser.set_defaults(run=_bisect)


def _bisect(options: argparse.Namespace) -> int:
    check_least(options, "threads", "pairs", "stretches")
    for name in ("least", "wrong"):
        if not 0.0 < getattr(options, name) < 0.5:
            raise PerfsuiteError(f"--{name}={getattr(options, name)}: expected a share below 0.5, such as 0.05")
    if options.build is not None and options.source is None:
        raise EngineError("--build: says how revisions are built; name their checkout with --source")
    _refuse_unknown_case(options)
    with progress("bisect", options) as tell:
        builder = Builder(cache_dir=user_cache(), tell=tell.step, source=options.source, command=options.build)
        names = tuple(name for each in options.builds for name in builder.expanded(each))
        if len(names) < 2:
            raise EngineError(f"{' '.join(options.builds)}: one build has nothing beside it; name two or more")
        builder.check(*names)
        if n_changes := builder.n_changes(names[-1]):
            tell.remark(f"{names[-1]}: without {format_count(n_changes, 'changed file')} that no commit holds")
        # a profile that lies in the folder of what is judged is none
        profile = find_profile("host", folders=(user_folder(),))
        with taken_device(profile, "bisect", options) as taken:
            run = engine_run(options, taken.board, n_repetitions=1)
            engine = taken.board.facts().engine
            run = replace(
                run,
                workload=with_engine_graphs(
                    run.workload, engine, taken.board, models_dir=user_cache() / "models", remark=tell.remark
                ),
            )
            case = _case(options.case or run.workload.graph_phases()[-1].value, run.workload)
            pairs = BuildPairs(
                board=taken.board,
                profile=profile,
                plan=run.plan,
                case=case,
                floor_ns=_floor_ns(case, taken.board, profile, run.plan.n_threads),
                names=names,
                make=partial(_built, builder, tell),
                remark=tell.remark,
            )
            found = _search(options, pairs, tell)
            places = tuple(_place(point, pairs, run, taken.board, tell) for point in found.points)
    _answer(options, names, pairs, found, places)
    return 0 if places else 1 if found.undecided else 10


def _refuse_unknown_case(options: argparse.Namespace) -> None:
    """Refuse a model, a scenario or a case that there is not, before anything is compiled or measured for it.

    Cases of a model whose graphs only the engine knows are known later.
    """
    weights, scenario = named_weights(options), find_scenario(options.scenario)
    workload = WorkloadRequest.of(options).workload(
        weights, scenario, flash_attn=True, models_dir=user_cache() / "models"
    )
    if options.case is not None and workload.is_analytical and workload.projector is None:
        _case(options.case, workload)


def _built(builder: Builder, tell: Progress, named: str) -> Engine:
    engine = builder.engine(named)
    if age := builder.age(engine):
        tell.remark(f"{named}: build {engine.build_id}{age}")
    return engine


def _floor_ns(case: Case, board: Board, profile: Profile, n_threads: int) -> int | None:
    """Return the least that physics allows a phase; an operator may be computed otherwise by another build."""
    if case.kind != "phase":
        return None
    measured = measured_ceilings(board, n_threads)
    best = best_of_board(board, measured, user_cache())
    spread_ratio, least_ns = profile.ceiling_spread_ratio, profile.forecast_least_ns
    return expect(
        case.costs, measured, best, tolerance_ratio=None, least_ns=least_ns, spread_ratio=spread_ratio
    ).floor_ns


def _case(asked: str, workload: LlamaWorkload) -> Case:
    """Return the case whose id ends so; a phase before its operators."""
    by_id = {each.case_id: each for each in (*phase_cases(workload), *operator_cases(workload))}
    phases = [name for name, each in by_id.items() if each.kind == "phase" and f"/{name}".endswith(f"/{asked}")]
    return by_id[named_case(asked, phases or by_id, "--case=")]


def _search(options: argparse.Namespace, pairs: BuildPairs, tell: Progress) -> Searched:
    n_taken = 0

    def take(old: int, new: int, n_pairs: int) -> list[float]:
        nonlocal n_taken
        tell.step(f"{pairs.names[old]} against {pairs.names[new]}, {n_taken} pairs before")
        n_taken += n_pairs
        return pairs.take(old, new, n_pairs)

    search = ChangeSearch(
        n_builds=len(pairs.names),
        take=take,
        least_ratio=options.least,
        wrong_ratio=options.wrong,
        n_stretches=min(options.stretches, len(pairs.names) - 1),
        is_made=pairs.is_made,
        most_pairs=options.pairs,
    )
    try:
        return search.run()
    except UnusableBuildError as error:
        build = error.args[0]
        raise EngineError(f"{pairs.names[build]}: cannot be measured, and nothing can be said without it") from None


def _place(point: ChangePoint, pairs: BuildPairs, run: EngineRun, board: Board, tell: Progress) -> _Place:
    """Compare the two builds beside a change once more, for the operators that carry it."""
    before, after = pairs.names[point.before], pairs.names[point.after]
    tell.step(f"operators of {before} and {after}")
    setup = ComparisonSetup.of(run.workload, pairs.profile, _CARRIER_BUDGET_S)
    judgements: tuple[Judgement, ...] = ()
    try:
        compared = compare_plans(setup, (pairs.plan_of(point.before), pairs.plan_of(point.after)), board)
        judgements = compared.judgements
    except MeasurementError as error:  # the place is known all the same
        tell.remark(f"operators of {before} and {after} are not known: {error}")
    case = pairs.case
    if case.kind == "phase":
        carriers = (
            carrier.role
            for phase in phase_attributions(judgements)
            if phase.case_id == case.case_id
            for carrier in phase.carriers
        )
    else:
        changed = (Outcome.REGRESSED, Outcome.IMPROVED)
        carriers = (str(case.role) for each in judgements if each.case_id == case.case_id and each.outcome in changed)
    return _Place(
        point=point,
        before=before,
        after=after,
        between=tuple(pairs.names[each] for each in range(point.before + 1, point.after)),
        carriers=tuple(carriers),
    )


def _answer(
    options: argparse.Namespace, names: Sequence[str], pairs: BuildPairs, found: Searched, places: Sequence[_Place]
) -> None:
    undecided = tuple((names[first], names[last]) for first, last in found.undecided)
    broken = {names[build]: why for build, why in pairs.broken.items()}
    plain = {
        "case": pairs.case.case_id,
        "builds": list(names),
        "n_pairs": found.n_pairs,
        "changes": [each.to_plain() for each in places],
        "undecided": [list(each) for each in undecided],
        "left_out": broken,
    }

    def parts() -> Iterator[Part]:
        yield f"{pairs.case.case_id}, {len(names)} builds, {found.n_pairs} pairs"
        if places:
            head = ("changed with", "against", "change (95 %)", "wrong", "carried by")
            yield Sheet(head, [(p.after, p.before, p.interval, p.odds, ", ".join(p.carriers) or "-") for p in places])
        elif not undecided:
            yield f"no change of {options.least:.1%} or more between {names[0]} and {names[-1]}"
        for first, last in undecided:
            yield f"undecided between {first} and {last}: more --pairs, or a larger --least, would decide"
        for place in (each for each in places if each.between):
            yield f"{place.after}: or one of {', '.join(place.between)} before it, which cannot be measured"

    give(Answer(parts=parts, plain=lambda: plain), options)
