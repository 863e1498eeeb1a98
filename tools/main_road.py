#!/usr/bin/env python3
"""Measures what `pytest --device` decides against its own baseline, in runs of one build: false alarms, power, time.

    .venv/bin/python tools/main_road.py --runs=10
    .venv/bin/python tools/main_road.py --runs=20 --inject=decode=0.05 --find=decode
    .venv/bin/python tools/main_road.py --runs=10 --without-engine
    .venv/bin/python tools/main_road.py --runs=10 --builds OLD/lib NEW/lib --beside=install
    .venv/bin/python tools/main_road.py --folder=DIR --runs=0 --replay
    .venv/bin/python tools/main_road.py --folder=DIR --runs=0 --spread

It records a baseline in a folder of its own, then runs pytest against it and counts outcomes in each `run.json`. What
is found has an outcome of `regressed` on a case whose id ends so. Measure with nothing else running. With `--builds`
the two folders of libraries are compared instead, and with `--beside` each run has one of the neighbours of
tools/neighbour.py, which knows the new side by its folder. `--replay` applies
our rule and those of five other tools to the samples of all runs without `--inject` that the folder holds: as they are,
for false alarms, and with the new side of prefill and decode made slower, for power; it names the cases in which one
side is slower on the whole. `--spread` takes the folder's runs without an engine for sessions, and shows how much their
phases differ as measured, and corrected by sentinels whose weights are fitted to the other sessions.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from perfsuite.experiments.certificate.peers import PEERS, PeerSamples
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.drift import fitted_weights, sentinel_of
from perfsuite.verdict.entry import Anchor, BaselineEntry, StoredSession
from perfsuite.verdict.pairs import LOOKS, Pairs, Suite, verdicts_at

_QUESTIONS = ("/end_to_end", "/prefill", "/decode")

#: A case that takes as long is to be decided.
_LONG_NS = 100_000

#: How much slower the new side of which cases is made in a replay, one change at a time.
_SLOWER = (
    *((end, ratio) for end in ("/prefill", "/decode") for ratio in (0.02, 0.03, 0.05)),
    *((end, 0.2) for end in ("/prefill/ffn_up", "/decode/ffn_up")),
)

#: So many cases are named in which one side is slower on the whole.
_N_BIASES = 5

#: The ids of the cases of a run that a rule claims to be slower: of each case the old and the new samples.
_Rule = Callable[[Pairs, dict[str, Any]], set[str]]


def main() -> int:
    """Record, run, and print a line a run and a table."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="main-road-") as name:
        folder = Path(options.folder or name)
        if options.runs and not options.builds and not (folder / "baselines").exists():
            _pytest(folder, options, "--baseline=record")
        injected = [f"--perf-inject={options.inject}"] if options.inject else []
        runs = []
        for number in range(options.runs):
            if options.without_engine:  # a run keeps its engine for the next one, which may be that of the baseline
                shutil.rmtree(folder / "cache" / "perfsuite" / "engines", ignore_errors=True)
            began_s = time.monotonic()
            with _neighbour(options):
                run, code = _pytest(folder, options, *injected)
            runs.append(run)
            print(f"{number + 1}: {time.monotonic() - began_s:.0f} s, exit {code}, {_counted(run)}", flush=True)
        if runs:
            _summary(runs, options.find)
        if options.replay:
            _replay(folder)
        if options.spread:
            _spread(folder)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="runs against the baseline (default 10)")
    parser.add_argument("--inject", metavar="OP=RATIO", help="slow an operator or a phase down in each run")
    parser.add_argument("--find", metavar="END", help="count the runs in which a case whose id ends so regressed")
    parser.add_argument("--without-engine", action="store_true", help="let the stored times judge alone")
    parser.add_argument("--replay", action="store_true", help="apply other tools' rules to the runs of the folder")
    parser.add_argument("--spread", action="store_true", help="show how the sessions of the folder differ")
    parser.add_argument(
        "--builds", nargs=2, metavar=("OLD", "NEW"), help="folders of libraries, in place of a baseline"
    )
    parser.add_argument("--beside", metavar="KIND", help="a neighbour of each run, as tools/neighbour.py names it")
    parser.add_argument("--folder", metavar="DIR", help="keep baseline and runs here, and go on from what is there")
    parser.add_argument("arguments", nargs="*", help="more of pytest's arguments, behind --")
    return parser


@contextmanager
def _neighbour(options: argparse.Namespace) -> Iterator[None]:
    """Let the neighbour that is asked for run beside."""
    if options.beside is None:
        yield
        return
    import llama_cpp  # whose libraries are the new side, unless builds are named

    side = options.builds[1] if options.builds else str(Path(llama_cpp.__file__).parent / "lib")
    tool = Path(__file__).with_name("neighbour.py")
    process = subprocess.Popen([sys.executable, tool, options.beside, f"--side={side}"], start_new_session=True)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _pytest(folder: Path, options: argparse.Namespace, *more: str) -> tuple[dict[str, Any], int]:
    """Run the shipped cases with a cache in the folder; return the run's file and the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    run_dir = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    command = [sys.executable, "-m", "pytest", "--device=host", "--pyargs", "perfsuite.cases", f"--rootdir={folder}"]
    command += [
        f"--perf-dir={run_dir}",
        f"--baseline-dir={folder / 'baselines'}",
        "--perf-report=off",
        "--perf-wait=10m",
        "-q",
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(_cache(folder))}
    if options.builds:
        environment["LLAMA_CPP_LIB_PATH"] = options.builds[1]
        command.append(f"--against={options.builds[0]}")
    done = subprocess.run(
        [*command, *more, *options.arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    try:
        run: dict[str, Any] = json.loads((run_dir / "run.json").read_text())
    except FileNotFoundError:
        sys.exit(f"{done.stdout}\n{done.stderr}\nno run.json: pytest ended with {done.returncode}")
    return run, done.returncode


def _cache(folder: Path) -> Path:
    """Return a cache with the user's models and native libraries, and with an engine store of its own."""
    own = folder / "cache" / "perfsuite"
    if not own.exists():
        own.mkdir(parents=True)
        known = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perfsuite"
        for each in known.iterdir() if known.exists() else ():
            if each.name != "engines":
                (own / each.name).symlink_to(each)
    return folder / "cache"


def _counted(run: dict[str, Any]) -> str:
    outcomes = Counter(case["outcome"] for case in run["cases"])
    long = [case for case in run["cases"] if (case["baseline_ns"] or 0) >= _LONG_NS]
    undecided = sum(case["outcome"] not in ("pass", "improved", "regressed") for case in long)
    pairs = max((case["n_pairs"] or 0 for case in run["cases"]), default=0)
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    named = [
        f"{case['id'].split('/', 2)[-1]} {case['outcome']} {case['change_ratio'] - 1.0:+.1%}"
        for case in run["cases"]
        if case["outcome"] in ("regressed", "improved", "suspect") and case["change_ratio"]
    ]
    return f"{told}; {undecided} of {len(long)} of 100 us and more undecided; {pairs} pairs; {' '.join(named)}"


def _summary(runs: list[dict[str, Any]], wanted: str | None) -> None:
    cases = [case for run in runs for case in run["cases"]]
    outcomes = Counter(case["outcome"] for case in cases)
    print(f"{len(runs)} runs, {len(cases)} cases: {dict(outcomes)}")
    for outcome in ("regressed", "improved", "suspect"):
        n_runs = sum(any(case["outcome"] == outcome for case in run["cases"]) for run in runs)
        print(f"runs with a case that is {outcome}: {n_runs}")
    undecided = [case for case in cases if case["outcome"] in ("suspect", "inconclusive", "invalid", "incomparable")]
    long = [case for case in undecided if (case["baseline_ns"] or 0) >= _LONG_NS]
    phases = [case for case in undecided if case["kind"] == "phase"]
    print(f"undecided: {len(undecided) / max(1, len(cases)):.1%}; phases {len(phases)}; of 100 us and more {len(long)}")
    if wanted:
        found = sum(
            any(case["outcome"] == "regressed" and case["id"].endswith(wanted) for case in run["cases"]) for run in runs
        )
        print(f"found {wanted}: {found} of {len(runs)}")
    passed = [case for case in cases if case["outcome"] == "pass"]
    at = sorted(case["resolution_ratio"] for case in passed if case["step_share_ratio"] is None)
    print(f"passes by a share of their step: {len(passed) - len(at)}")
    if at:
        print(f"other passes at: median {at[len(at) // 2]:.1%}, largest {at[-1]:.1%}")


def _replay(folder: Path) -> None:
    """Print how often each rule claims a slowdown in the samples of the folder's runs."""
    runs = [run for path in sorted(folder.glob("run-*/run.json")) if _is_unchanged(run := json.loads(path.read_text()))]
    paired = [[case for case in run["cases"] if case["n_pairs"]] for run in runs]
    print(f"{len(runs)} runs, {sum(map(len, paired))} cases in pairs")
    rules: list[tuple[str, _Rule]] = [("perfsuite", _we_claim)]
    rules += [(name, partial(_peer_claims, name, alarms)) for name, alarms in PEERS.items()]
    for name, rule in rules:
        false = [len(_claims(rule, cases)) for cases in paired]
        found = ", ".join(f"{end[1:]} +{ratio:.0%} {_n_found(rule, paired, end, ratio)}" for end, ratio in _SLOWER)
        print(f"{name}: false alarms {sum(false)}, in {sum(map(bool, false))} runs; found: {found}")
    _print_biases([case for cases in paired for case in cases])


def _print_biases(cases: Sequence[dict[str, Any]]) -> None:
    """Print the cases whose sides differ most over all pairs, against the error of the mean; both are one build."""
    changes: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        pairs = zip(case["samples_ns"], case["baseline_samples_ns"], strict=True)
        changes[case["id"]] += [math.log(new_ns / old_ns) for new_ns, old_ns in pairs]
    errors = {name: stdev(found) / math.sqrt(len(found)) for name, found in changes.items()}
    furthest = sorted(changes, key=lambda name: abs(fmean(changes[name])) / errors[name], reverse=True)
    for name in furthest[:_N_BIASES]:
        print(f"{name}: new side {fmean(changes[name]):+.1%} +- {errors[name]:.1%} in {len(changes[name])} pairs")


def _spread(folder: Path) -> None:
    """Print the standard deviation of prefill and decode over the sessions."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("run-*/run.json"))]
    sessions = tuple(_session(run) for run in runs if not run["injected"] and run["sentinels_ns"].get("llama"))
    case_ids = [case_id for case_id in sessions[0].samples_ns if _is_slowed(case_id)]
    print(f"{len(sessions)} sessions from {sessions[0].recorded_at} to {sessions[-1].recorded_at}")
    for case_id in case_ids:
        sentinel = sentinel_of(case_id) or ""
        times, sentinels = (
            [math.log(each.median_ns(case_id)) for each in sessions],
            [math.log(each.sentinel_ns(sentinel) or 1.0) for each in sessions],
        )
        weights = [
            _weights([*sessions[:place], *sessions[place + 1 :]]).get(sentinel, 0.0) for place in range(len(times))
        ]
        corrected = [
            time - weight * (seen - fmean(sentinels))
            for time, weight, seen in zip(times, weights, sentinels, strict=True)
        ]
        print(
            f"{case_id}: {stdev(times):.1%} as measured, {stdev(corrected):.1%} corrected, weight of {sentinel}"
            f" {min(weights):.2f} to {max(weights):.2f}"
        )


def _session(run: dict[str, Any]) -> StoredSession:
    return StoredSession(
        recorded_at=run["started_at"],
        suite_version=run["suite_version"],
        samples_ns={case["id"]: tuple(case["samples_ns"]) for case in run["cases"] if case["samples_ns"]},
        sentinels_ns={name: tuple(times) for name, times in run["sentinels_ns"]["llama"].items()},
    )


def _weights(sessions: Sequence[StoredSession]) -> dict[str, float]:
    anchor = Anchor(recorded_at="", reason="", cases_ns={})
    return fitted_weights(BaselineEntry(fingerprint={}, sessions=tuple(sessions), anchor=anchor), {})


def _is_unchanged(run: dict[str, Any]) -> bool:
    return not run["injected"] and any(case["n_pairs"] for case in run["cases"])


def _is_slowed(case_id: str) -> bool:
    return case_id.endswith(("/prefill", "/decode"))


def _n_found(rule: _Rule, paired: Sequence[Sequence[dict[str, Any]]], end: str, slower_ratio: float) -> int:
    """Return in how many runs a rule finds the case that is made slower."""
    return sum(any(each.endswith(end) for each in _claims(rule, cases, end, slower_ratio)) for cases in paired)


def _claims(
    rule: _Rule, cases: Sequence[dict[str, Any]], end: str | None = None, slower_ratio: float = 0.0
) -> set[str]:
    """Apply a rule to a run in which the cases of that end are slower by so much on the new side."""

    def new_ns(case: dict[str, Any]) -> list[int]:
        slower = 1.0 + slower_ratio if end and case["id"].endswith(end) else 1.0
        return [round(each * slower) for each in case["samples_ns"]]

    pairs = {case["id"]: (case["baseline_samples_ns"], new_ns(case)) for case in cases}
    return rule(pairs, {case["id"]: case["margin_ratio"] for case in cases})


def _we_claim(pairs: Pairs, margins: dict[str, Any]) -> set[str]:
    """Judge by all pairs that the run took, at the share of a planned look, the engine and each other group apart."""
    claimed = set()
    for kinds in (("phase", "operator"), ("kernel",), ("binding",)):
        group = {name: margin for name, margin in margins.items() if name.startswith(kinds)}
        verdicts = verdicts_at(pairs, group, _suite(group), share_ratio=LOOKS[0][1])
        claimed |= {name for name, verdict in verdicts.items() if verdict.outcome is Outcome.REGRESSED}
    return claimed


def _suite(names: Iterable[str]) -> Suite:
    questions = frozenset(name for name in names if name.startswith("phase/") and name.endswith(_QUESTIONS))
    whole_of = {name: f"phase/{name.partition('/')[2].rpartition('/')[0]}" for name in names if "operator/" in name}
    return Suite(questions=questions, whole_of=whole_of)


def _peer_claims(name: str, alarms: Callable[[PeerSamples], bool], pairs: Pairs, _: dict[str, Any]) -> set[str]:
    """Take the summaries of the processes for one benchmark's repetitions; tango pairs them."""
    if name == "tango":
        samples = {
            case_id: PeerSamples(old=tuple((each,) for each in old), new=tuple((each,) for each in new))
            for case_id, (old, new) in pairs.items()
        }
    else:
        samples = {case_id: PeerSamples(old=(tuple(old),), new=(tuple(new),)) for case_id, (old, new) in pairs.items()}
    return {case_id for case_id, each in samples.items() if alarms(each)}


if __name__ == "__main__":
    sys.exit(main())
