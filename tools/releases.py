"""What the suite can do with releases of llama-cpp-python: the table 'Older and newer releases' of docs/results.md.

    python tools/releases.py 0.3.9 0.3.16 0.3.36 > releases.md
    python tools/releases.py --models smollm2-135m-l2-q8_0,qwen3-0.6b-l2-q8_0 0.3.22

Each release is compiled from its sources, or taken from the cache. Then come short runs of each model, whose phases and
operators are counted; one with each recorder; and the phases against the independent tracer. Nothing is judged. The
exit code is 1 where a release gives no phases or operators of a model.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.engine import Engine
from perfsuite.measure.environment import ENGINE_NAME, program_environment

_MODELS = "smollm2-135m-l2-q8_0,qwen2.5-1.5b-l2-q4_k_m"
_RECORDERS = ("callback", "preload", "ebpf")
_LIMIT_S = 600.0
PERFSUITE = str(Path(sys.executable).parent / "perfsuite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The cases of one model with one release."""

    n_phases: int
    n_operators: int
    n_invalid: int
    #: Operators that are computed otherwise than the analytical graph has them.
    n_without_forecast: int
    why: str

    def __str__(self) -> str:
        """As a cell of the table."""
        left = f", {self.n_invalid} invalid" if self.n_invalid else ""
        return f"{self.n_phases} / {self.n_operators}{left}; {self.n_without_forecast} otherwise"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="+")
    parser.add_argument("--models", default=_MODELS)
    options = parser.parse_args(arguments)
    models = options.models.split(",")
    heads = ("release", "compiled, s", *models, *_RECORDERS, "recorders agree", "phases by another tracer")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    failed = False
    for release in options.releases:
        cells, is_whole = row(release, models)
        failed |= not is_whole
        print(f"| {' | '.join((release, *cells))} |", flush=True)
    return int(failed)


def row(release: str, models: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the cells of a release, and whether it has phases and operators of each model."""
    began_s = time.monotonic()
    try:
        engine = Builder(cache_dir=user_cache(), tell=lambda *_: None).engine(release)
    except PerfsuiteError as error:
        return (f"no: {error}",), False
    compiled = f"{time.monotonic() - began_s:.0f}"
    counted = [counts(engine, model) for model in models]
    for model, each in zip(models, counted, strict=True):
        if each.why:
            print(f"{release}, {model}: {each.why}", file=sys.stderr)
    is_whole = all(each.n_phases and each.n_operators for each in counted)
    return (compiled, *map(str, counted), *recorders(engine, models[0])), is_whole


def counts(engine: Engine, model: str) -> Counted:
    """Run the cases of a model once, and count what they are."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--device=host", f"--model={model}", "--scenario=p16-g4", "--perf-replicates=3", "--baseline=off"]
        more = ["--perf-calibrate=off", "--perf-history=off", f"--perf-dir={folder}", "-k", "phase or operator"]
        done = started(engine, [sys.executable, "-m", "pytest", "-q", *words, *more])
        path = Path(folder) / "run.json"
        if not path.is_file():
            return Counted(n_phases=0, n_operators=0, n_invalid=0, n_without_forecast=0, why=done.stdout[-300:])
        run = json.loads(path.read_text())
    found: list[dict[str, Any]] = run["cases"]
    known = [each for each in found if each["outcome"] != "invalid"]
    operators = [each for each in known if each["kind"] == "operator" and not each["id"].endswith("/rest")]
    invalid = [each for each in found if each["outcome"] == "invalid"]
    return Counted(
        n_phases=sum(each["kind"] == "phase" for each in known),
        n_operators=len(operators),
        n_invalid=len(invalid),
        n_without_forecast=sum(each["expected_ns"] is None for each in operators),
        why="; ".join(dict.fromkeys(f"{each['id']}: {each['reason']}" for each in invalid[:3])),
    )


def recorders(engine: Engine, model: str) -> Iterator[str]:
    """Say whether each recorder gives a trace, whether two of them agree, and the independent tracer's phases."""
    trace = [PERFSUITE, "trace"]
    with tempfile.TemporaryDirectory() as folder:
        for name in _RECORDERS:
            words = [f"--recorder={name}", f"--model={model}", "--scenario=p16-g4", f"--output={folder}/{name}"]
            yield outcome(started(engine, [*trace, *words]))
    yield outcome(started(engine, [*trace, "agree", f"--model={model}"]))
    words = ["fidelity", "--phases-only", "--no-uprobes", "--processes=1", f"--model={model}", "--scenario=p16-g4"]
    yield outcome(started(engine, [PERFSUITE, *words]))


def started(engine: Engine, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command with a release."""
    environment = program_environment({ENGINE_NAME: str(engine.library_dir)})
    return subprocess.run(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LIMIT_S
    )


def outcome(done: subprocess.CompletedProcess[str]) -> str:
    """Return a cell; what a command that failed said goes to standard error."""
    if done.returncode:
        print(f"{' '.join(done.args[1:])}: {done.stdout.strip()[-400:]}", file=sys.stderr)
    return "no" if done.returncode else "yes"


if __name__ == "__main__":
    sys.exit(main())
