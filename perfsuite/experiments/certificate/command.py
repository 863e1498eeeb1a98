"""``perfsuite certify``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from perfsuite import __version__
from perfsuite.cli.answer import Answer, Part, Sheet, give, percent
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import engine_run, named_weights
from perfsuite.cli.progress import progress
from perfsuite.cli.run_options import add_answer, add_subject, check_least, effort_group
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.experiments.certificate.certificate import (
    Certificate,
    Power,
    Rate,
    Trial,
    Truth,
    append_trial,
    certificate,
    read_trials,
    run_trial,
)
from perfsuite.experiments.pairs import ComparisonSetup
from perfsuite.measure.environment import environment_engine
from perfsuite.records.outcome import Outcome
from perfsuite.records.whole_file import write_json
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.scenario import find_scenario

_DEFAULT_RUNS, _BUDGET_S = 20, 90.0

_EXAMPLES = {
    "perfsuite certify --runs=20": "false alarms: half an hour",
    "perfsuite certify --runs=20 --inject=0.05 --inject-operator=ffn_up=0.2": "and what is found: an hour and a half",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "certify",
        about="""
        Compares a build with itself and with a slowed copy: false alarms and found regressions, with bounds, beside the
        rules of other tools. A run takes 90 s. An interrupted certificate continues the next time.
        """,
        examples=_EXAMPLES,
        writes="the runs and the summary, into the cache or --state",
        see=("docs/comparing.md", "docs/results.md"),
    )
    subject = add_subject(parser, "device", "model", "scenario")
    subject.add_argument("--threads", type=int, metavar="N", help="threads (default: usable cores)")
    effort = effort_group(parser)
    effort.add_argument("--runs", type=int, default=_DEFAULT_RUNS, metavar="N", help="runs of each kind (default 20)")
    text = "also slow both phases by this ratio, such as 0.05; repeatable"
    effort.add_argument("--inject", type=float, action="append", default=[], metavar="RATIO", help=text)
    text = "also slow one operator, such as ffn_up=0.2; repeatable"
    effort.add_argument("--inject-operator", action="append", default=[], metavar="ROLE=RATIO", help=text)
    effort.add_argument("--load", action="store_true", help="also start a background load half way")
    effort.add_argument("--no-same", action="store_true", help="no further runs of a build against itself")
    answer = add_answer(parser)
    answer.add_argument("--state", type=Path, metavar="FILE", help="file of the runs (default: in the cache)")
    answer.add_argument("--report-only", action="store_true", help="run nothing, show what is kept")
    parser.set_defaults(run=_certify)


def _certify(options: argparse.Namespace) -> int:
    profile = find_profile(options.device)
    check_least(options, "runs", "threads")
    check_generates(named_weights(options).shape, f"--model={options.model}")
    find_scenario(options.scenario)
    state = options.state
    if state is None:
        build_id, name = _build_id(profile, options)[:8], _workload_name(options).replace("/", "-")
        state = user_cache() / "certify" / f"{options.device}-{name}-{build_id}-{__version__}.jsonl"
    trials = list(read_trials(state))
    missing = () if options.report_only else tuple(_missing(_wanted(options), trials))
    if missing:
        with taken_device(profile, "certify", options) as taken, progress("certify", options) as told:
            run = engine_run(options, taken.board)  # with as many threads as the device leaves processors
            comparison = ComparisonSetup.of(run.workload, profile, _BUDGET_S)
            for at, truth in enumerate(missing):
                told.step("runs", at, len(missing))
                trial = run_trial(run.plan, comparison, truth, taken.board)
                append_trial(state, trial)
                trials.append(trial)
                told.remark(f"{len(trials)} runs, {_told(trial)}")
    found = certificate(trials)
    plain = {"device": options.device, "workload": _workload_name(options), **found.to_plain()}
    summary = state.with_suffix(".json" if state.suffix != ".json" else ".summary.json")  # never onto the runs
    write_json(summary, plain, MeasurementError)
    give(Answer(parts=lambda: _parts(found), plain=lambda: plain), options)
    return 0


def _build_id(profile: Profile, options: argparse.Namespace) -> str:
    """Return the build that is measured, by which runs are kept; a board at the end of a link is asked for its own."""
    if profile.is_local:
        return environment_engine().build_id
    with taken_device(profile, "certify", options) as taken:
        return taken.board.facts().engine.build_id


def _workload_name(options: argparse.Namespace) -> str:
    return f"{Path(options.model).stem if options.model.endswith('.gguf') else options.model}/{options.scenario}"


def _wanted(options: argparse.Namespace) -> list[Truth]:
    """Interleave the kinds of runs, so that none of them has a quiet hour for itself."""
    kinds = [] if options.no_same else [Truth()]
    kinds += [Truth(phase_ratio=_ratio("--inject", str(ratio))) for ratio in options.inject]
    kinds += [_operator_truth(text) for text in options.inject_operator]
    kinds += [Truth(is_loaded=True)] if options.load else []
    return kinds * int(options.runs)


def _operator_truth(text: str) -> Truth:
    operator, _, ratio = text.rpartition("=")
    if not operator:
        raise PerfsuiteError(f"--inject-operator={text}: expected ROLE=RATIO, such as ffn_up=0.2")
    return Truth(operator=operator, operator_ratio=_ratio("--inject-operator", ratio))


def _ratio(name: str, text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0.0 < ratio <= 10.0:
        raise PerfsuiteError(f"{name}={text}: expected a share such as 0.05")
    return ratio


def _missing(wanted: Sequence[Truth], trials: Sequence[Trial]) -> Iterator[Truth]:
    there = [trial.truth for trial in trials]
    for truth in wanted:
        if truth in there:
            there.remove(truth)
        else:
            yield truth


def _told(trial: Trial) -> str:
    truth, n_regressed = trial.truth, sum(each.outcome is Outcome.REGRESSED for each in trial.answers.values())
    done = f"phases {truth.phase_ratio:+.0%}" if truth.phase_ratio else "nothing slowed"
    done = f"{truth.operator} {truth.operator_ratio:+.0%}" if truth.operator else done
    load = ", loaded half way" if truth.is_loaded else ""
    return (
        f"{done}{load}: {n_regressed} regressed of {len(trial.answers)}, carrier {trial.carrier}, "
        f"{trial.n_pairs} pairs in {trial.duration_s:.0f} s"
    )


def _parts(found: Certificate) -> Iterator[Part]:
    rows = [
        (title, f"{rate.k} of {rate.n}", percent(rate.ratio, 2), f"{rate.lower * 100:.2f} to {percent(rate.upper, 2)}")
        for title, rate in _rows(found)
    ]
    yield Sheet(("", "k of n", "rate", "95 % bounds"), rows)
    if found.mean_pairs is not None:
        yield f"pairs a run without change: {found.mean_pairs:.1f} in {found.mean_duration_s:.0f} s on average"
    for phase, ratio in found.smallest_effect_ratio.items():
        yield f"smallest change that such a run detects, {phase}: {(ratio - 1) * 100:+.1f} %"


def _rows(found: Certificate) -> Iterator[tuple[str, Rate]]:
    yield "false alarms, all cases", found.false_alarms
    yield "false alarms, whole runs", found.suite_false_alarms
    yield "false improvements", found.false_improvements
    yield "decided as PASS without change", found.passes
    yield "false alarms, prefill and decode", found.phase_false_alarms
    yield from _power_rows("", found.power)
    yield "operator named", found.attributions
    yield "false alarms under load", found.loaded_false_alarms
    for peer in found.peers:
        yield f"{peer.name}: false alarms", peer.false_alarms
        yield from _power_rows(f"{peer.name}: ", peer.power)


def _power_rows(whose: str, powers: Mapping[str, Power]) -> Iterator[tuple[str, Rate]]:
    for share, power in powers.items():
        for phase, rate in power.by_phase.items():
            yield f"{whose}found {float(share):+.0%} in {phase}", rate
