"""What llama-cpp-python adds to the native driver, and whether a change in it is found and named.

    python tools/binding_figures.py pairs --pairs=40
    python tools/binding_figures.py planted --runs=10
    python tools/binding_figures.py same --runs=20

``pairs`` takes pairs of processes and prints the overhead with its bounds, and how much of it the spans of the
binding's parts explain. ``planted`` records a baseline, then runs with a copy of the binding that sleeps in its
sampling; ``same`` runs it as it is. Both run ``pytest --device=host -k binding`` and print which cases changed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

from perfsuite.cli.opencl_run import engine_run
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.experiments.binding.measurement import (
    MOST_GEN,
    BindingPair,
    explained_ratio,
    overhead_of,
    pair_of,
    run_pair,
)
from perfsuite.measure.environment import program_environment
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.schedule import Rule
from perfsuite.records.binding import ITL, TTFT, Door, Part
from perfsuite.units import format_change

#: A line of ``Llama.sample``, and what is planted before it.
_BEFORE = "        ridx = idx - self.n_tokens if idx is not None else -1\n"
_SLEEP = '        __import__("time").sleep({seconds})\n'


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the first word says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("pairs", "planted", "same"))
    parser.add_argument("--model", default="smollm2-135m-q8_0")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sleep", type=float, default=0.0005, metavar="S", help="planted in each token's sampling")
    options = parser.parse_args(arguments)
    if options.action == "pairs":
        print("\n".join(overhead_lines(taken_pairs(options))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        runs(options, Path(folder))
    return 0


# ---- pairs -----------------------------------------------------------------------------------------------------------


def taken_pairs(options: argparse.Namespace) -> list[BindingPair]:
    """Take pairs that had no competition."""
    named = argparse.Namespace(
        device="host", model=options.model, scenario="siso", threads=None, opencl_platform=None, quiet=True
    )
    profile, order, leaders = find_profile("host"), random.Random(), cycle((0, 1))
    rule = Rule(profile=profile)
    pairs: list[BindingPair] = []
    with taken_device(profile, "binding-figures", named) as taken:
        plan = engine_run(named, taken.board).plan
        plan = replace(plan, n_gen=min(plan.n_gen, MOST_GEN))
        while len(pairs) < options.pairs:
            payload = run_pair(taken.board, with_drawn_layout(plan, order), next(leaders))
            complaint = rule.complaint(payload)
            if complaint is None:
                pairs.append(pair_of(payload))
            print(f"{len(pairs)} of {options.pairs} pairs {complaint or ''}", file=sys.stderr, flush=True)
    return pairs


def overhead_lines(pairs: Sequence[BindingPair]) -> Iterator[str]:
    """Yield a row for each door and latency, and then the parts of each."""
    yield "| door | latency | native | binding | overhead | 95 % bounds | its spans explain |"
    yield "|---|---|---|---|---|---|---|"
    for door in Door:
        for whole in (TTFT, ITL):
            ratio = overhead_of(pairs, door, whole)
            native = _middle(each.native_ns[whole] for each in pairs)
            binding = _middle(each.binding_ns[f"{door.value}/{whole}"] for each in pairs)
            cells = (door.value, whole, _ms(native), _ms(binding), format_change(ratio.median_ratio))
            bounds = f"{format_change(ratio.lower_ratio)} to {format_change(ratio.upper_ratio)}"
            explained = format_change(explained_ratio(pairs, door, whole))
            yield f"| {' | '.join((*cells, bounds, explained))} |"
    yield ""
    yield f"A span costs {round(_middle(each.span_cost_ns for each in pairs))} ns. Parts, in us:"
    for door in Door:
        for whole in (TTFT, ITL):
            found = {
                part.value: _middle(each.binding_ns.get(f"{door.value}/{whole}/{part.value}", 0) for each in pairs)
                for part in Part
            }
            yield f"{door.value}/{whole}: " + ", ".join(f"{name} {time / 1e3:.1f}" for name, time in found.items())


def _middle(values: Any) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2])


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.2f} ms"


# ---- runs ------------------------------------------------------------------------------------------------------------


def runs(options: argparse.Namespace, folder: Path) -> None:
    """Record a baseline, run, and say which cases changed."""
    ran(options, folder, "baseline", {}, "--baseline=record")
    variables = {"PYTHONPATH": str(planted(folder, options.sleep))} if options.action == "planted" else {}
    n_right = 0
    for at in range(options.runs):
        changed = {name: each for name, each in ran(options, folder, str(at), variables).items() if each in _ALARMS}
        parts = {name.rpartition("/")[2] for name in changed if name.rpartition("/")[2] in set(Part)}
        is_right = parts == {Part.SAMPLING.value} if options.action == "planted" else not changed
        n_right += is_right
        print(f"{at + 1}: {'right' if is_right else 'wrong'}: {changed or 'nothing changed'}", flush=True)
    print(f"{n_right} of {options.runs} right")


_ALARMS = ("regressed", "slow", "impossible")


def ran(
    options: argparse.Namespace, folder: Path, name: str, variables: Mapping[str, str], *more: str
) -> dict[str, str]:
    """Run the cases of the binding; return their outcomes by id."""
    command = [
        *(sys.executable, "-m", "pytest", "--device=host", f"--model={options.model}", "-k", "binding", "-q"),
        *(f"--baseline-dir={folder / 'baselines'}", f"--perf-dir={folder / name}", "--perf-history=off"),
        *("-p", "no:cacheprovider", *more),
    ]
    done = subprocess.run(
        command, env=program_environment(variables), capture_output=True, text=True, timeout=600, check=False
    )
    path = folder / name / "run.json"
    if not path.is_file():
        raise SystemExit(f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {case["id"]: case["outcome"] for case in json.loads(path.read_text())["cases"]}


def planted(folder: Path, seconds: float) -> Path:
    """Return a folder with a copy of the binding that sleeps in its sampling."""
    spec = importlib.util.find_spec("llama_cpp")
    assert spec is not None
    assert spec.origin is not None
    source, copy = Path(spec.origin).parent, folder / "planted" / "llama_cpp"
    shutil.copytree(source, copy)
    shutil.copytree(source.parent / "include", copy.parent / "include")  # the headers of its libraries
    text = (copy / "llama.py").read_text()
    if _BEFORE not in text:
        raise SystemExit(f"{source}/llama.py: does not have {_BEFORE.strip()!r}")
    (copy / "llama.py").write_text(text.replace(_BEFORE, _SLEEP.format(seconds=seconds) + _BEFORE))
    return copy.parent


if __name__ == "__main__":
    sys.exit(main())
