"""Runs every subcommand that measures, with all of its options, here and on boards, and shows what is refused.

    python tools/try_commands.py --json tried.json
    python tools/try_commands.py --places program --only sweep

Three places: this machine; a board with Python (an sshd on a loopback port, with this checkout's suite); and one
without, set up by a bundle with the OpenCL backend. Each line of `LINES` is run at each of them with the smallest
model. A line has ended well with exit code 0, or 1 or 10 where it judges; another exit code is reported with its
message. Times mean nothing, for everything is as short as it can be. An option that no line tries is reported, too, so
that a new one is not forgotten; the exit code is 1 then, and where a line has failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the test board

from perfsuite.cli.registry import COMMANDS  # noqa: E402
from perfsuite.cli.whole_parser import parser_of  # noqa: E402
from tests.board_runs import write_profile  # noqa: E402
from tools.link_sides import lend_cache, loopback  # noqa: E402

_NAME = "tried"
_LIMIT_S = 900.0

#: What others do on this machine meanwhile is to decide nothing.
_TABLES = """
[judging]
max_waiting_ratio = 0.99
max_others_ratio = 0.99
ceiling_spread_ratio = 0.99
"""

#: Exit codes of a line that has done its work; the others are refusals and faults.
_DONE = {0, 1, 10}

_RUN = "--model=smollm2-135m-l2-q8_0 --scenario=p16-g4 --threads=2"
_CL = "--opencl-platform=Intel"
_PYTEST = f"pytest -q {_RUN} --perf-replicates=3 --baseline=off --perf-calibrate=off --perf-history=off"

_STUDY = """
schema = 1
title = "as short as it can be"
device = "{device}"
threads = 2
scenario = "p16-g4"
replicates = 3

[reference]
name = "made up"
accuracies = "{accuracies}/reference.json"

[[task]]
name = "arc_easy"
metric = "acc_norm"

[[model]]
name = "small"
suite = "small"

[[model.run]]
quantization = "q8_0"
weights = "smollm2-135m-l2-q8_0"
accuracies = "{accuracies}/pythia-160m-f16.json"
"""

_ACCURACIES = ROOT / "docs" / "examples" / "study" / "accuracies"

#: What is run.
LINES = (
    "calibrate --threads=2 --type=q8_0 --rounds=1 --json --quiet",
    "held-out --threads=2 --workload=smollm2-135m-q8_0:32 --json --quiet",
    "variants --threads=2 --model=smollm2-135m-l2-q8_0 --draft=smollm2-135m-l1-q8_0 --axis=lora --pairs=1 --json "
    "--markdown --quiet",
    f"certify {_RUN} --runs=1 --inject=0.5 --load --state=state.json --json --quiet",
    f"certify {_RUN} --runs=1 --no-same --inject-operator=ffn_up=0.5 --state=operator.json",
    f"certify {_RUN} --state=state.json --report-only",
    f"kernels {_RUN} {_CL} --flash-attn=off --json --quiet --top=3",
    f"offload {_RUN} {_CL} --backend=opencl --flash-attn=off --gpu-layers=0,1 --rounds=1 --json --quiet --plot=o.png",
    f"fidelity {_RUN} --phases-only --processes=1 --json --quiet",
    f"fidelity {_RUN} --operators-only --no-uprobes --processes=1",
    f"fidelity {_RUN} {_CL} --kernels-only --kernel=add --rounds=1 --kernel-budget=1",
    f"fidelity {_RUN} {_CL} --backend=opencl --processes=1 --rounds=1 --kernel-budget=1",
    "overhead --model=smollm2-135m-l2-q8_0 --threads=2 --recorder=callback --pairs=20 --json --quiet",
    "overhead --model=smollm2-135m-l2-q8_0 --threads=2 --recorder=live --pairs=5",
    "overhead --model=smollm2-135m-l2-q8_0 --threads=2 --recorder=ebpf-token --pairs=20",
    f"overhead --model=smollm2-135m-l2-q8_0 --threads=2 --backend=opencl {_CL} --pairs=5",
    f"trace {_RUN} --recorder=callback --json --quiet --output=callback --top=3",
    f"trace {_RUN} --recorder=preload",
    f"trace {_RUN} --recorder=ebpf --trace=operator,counters --buffer=ring --trace-floor=1 "
    "--counters=page-faults-minor",
    f"trace {_RUN} --recorder=opencl {_CL}",
    "trace --model=smollm2-135m-l2-q8_0 --scenario=p16-g4 --threads=2 --memory-limit=900M",
    f"live {_RUN} --repetitions=2 --limit=60 --json --quiet",
    f"live {_RUN} --backend=opencl {_CL}",
    f"live {_RUN} --cost --pairs=5",
    f"roofline {_RUN} {_CL} --replicates=3 --bounds --json --quiet --output=r.json --plot=r.png",
    f"roofline {_RUN} {_CL} --replicates=3 --again=r.json",
    "roofline --model=smollm2-135m-l2-q8_0 --threads=2 --replicates=3 --sweep=scenario",
    "sweep gemm --threads=2 --subject=tiled --type=f16 --tile=16 --vector=4 --m=16 --n=16:64 --k=64 --rounds=2 "
    f"--seed=1 {_CL} --plot=s.png --json --output=s.json --csv=s.csv --quiet",
    "sweep bmm --threads=2 --subject=ggml-cpu --b=8 --m=1 --n=16:64 --k=64 --rounds=2 --no-verify",
    f"sweep attention {_CL} --subject=ggml-opencl --heads=8 --kv-heads=8 --head-size=64 --context=16:32 --rounds=2",
    "sweep gemv --expected-only --n=16:64",
    f"policy gemm {_CL} --threads=2 --type=f16 --m=16 --n=64,96 --k=64 --choose=tiling --tiles=8,16 --vectors=4 "
    "--processes=6 --rounds=2 --seed=1 --json --quiet --output=p.json",
    "policy gemv --threads=2 --n=64,96 --k=64 --choose=backend --processes=6 --rounds=2",
    "policy bmm --threads=2 --type=f16 --b=8 --m=1 --n=64,96 --k=64 --choose=tiling --tiles=8 --vectors=4 "
    "--processes=6 --rounds=2",
    "policy attention --threads=2 --heads=8 --kv-heads=8 --head-size=64 --context=64,96 --choose=tiling --tiles=8,16 "
    "--vectors=4 --processes=6 --rounds=2",
    "study study.toml --json --quiet --output=study.json --plot=study.png",
    f"{_PYTEST} -kphase",
    f"{_PYTEST} --perf-budget=20s --against-model=smollm2-135m-l2-q4_0 -kphase",
    f"{_PYTEST} --backend=opencl --perf-opencl-platform=Intel --perf-flash-attn=off",
    f"{_PYTEST} --perf-fidelity",
    f"{_PYTEST} --mmproj=tiny-clip-f16 -kencode_image",
    f"{_PYTEST} --perf-overhead",
    f"{_PYTEST} --perf-trace",
    f"{_PYTEST} --perf-sweep=scenario",
    f"{_PYTEST} --perf-shapes=gemm --perf-shape-subjects=tiled,ggml-cpu --perf-shape-types=f16 "
    "--perf-shape-bounds=m=1:64,n=1:64,k=1:128 --perf-shape-profile=quick --perf-budget=20s",
    f"{_PYTEST} --perf-inject=ffn_up=1.5 -kphase",
)

#: Options whose work is the desk's alone: they choose or write its files, or follow its processes.
DESK = {
    *("--help", "--device", "--address", "--from", "--published", "--dry-run", "--llama-bench", "--llama-bench-model"),
    *("--pid", "program", "--ggml-include", "--socket", "--opencl", "--long", "--duration"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One line at one place."""

    line: str
    place: str
    exit_code: int
    time_s: float
    #: The last line that it wrote, or that tells of an error.
    said: str
    #: Whether it came to its end; a traceback is none, whatever its exit code.
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where lines are run from."""

    name: str
    folder: Path
    #: The profile's name.
    device: str
    environment: Mapping[str, str] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the lines, and print what they came to; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--places", default="here,python,program", help="by commas")
    parser.add_argument("--only", default="", metavar="REGEX", help="lines in which it is found")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same as JSON")
    options = parser.parse_args(arguments)
    found: list[Tried] = []
    lines = [line for line in LINES if re.search(options.only, line)]
    for name in options.places.split(","):
        with at(name) as place:
            for line in lines:
                each = tried(line, place)
                found.append(each)
                how = "done" if each.is_done else "FAILED"
                print(f"{name} {how} {each.exit_code} {each.time_s:.0f} s: {line}\n    {each.said}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    for name in (untried := [] if options.only else untried_options()):
        print(f"no line tries {name}")
    return 1 if untried or not all(each.is_done for each in found) else 0


@contextmanager
def at(name: str) -> Iterator[Place]:
    """Give a folder from which the device is that place."""
    with tempfile.TemporaryDirectory(prefix="perfsuite-try-") as made:
        folder = Path(made)
        device = "host" if name == "here" else _NAME
        (folder / "study.toml").write_text(_STUDY.format(device=device, accuracies=_ACCURACIES))
        if name == "here":
            lend_cache(folder / "cache" / "perfsuite")  # so that no calibration of the user's own is replaced
            yield Place(name=name, folder=folder, device=device, environment={"XDG_CACHE_HOME": f"{folder}/cache"})
            return
        with loopback(by_bundle=name == "program") as board:
            write_profile(folder, _NAME, board.reach, tables=_TABLES)
            board.set_up(folder, _NAME)
            yield Place(name=name, folder=folder, device=device)


def tried(line: str, place: Place) -> Tried:
    """Run one line."""
    command, *words = line.split()
    start = ["-m", "pytest", "-pno:cacheprovider"] if command == "pytest" else ["-m", "perfsuite.cli", command]
    named = [] if command == "study" else [f"--device={place.device}"]  # a study's plan names it
    began_s = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *start, *words, *named],
            cwd=place.folder,
            env={**os.environ, **place.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
        )
        exit_code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        exit_code, output = -1, f"still running after {_LIMIT_S:.0f} s"
    is_done = exit_code in _DONE and "Traceback (most recent call last)" not in output
    errors = [each for each in output.splitlines() if "error" in each.lower()]
    last = (output.strip() or "nothing").splitlines()[-1] if is_done or not errors else errors[-1]
    return Tried(
        line=line,
        place=place.name,
        exit_code=exit_code,
        time_s=time.monotonic() - began_s,
        said=last[:300],
        is_done=is_done,
    )


def untried_options() -> list[str]:
    """Return the options of the subcommands that measure, which no line has."""
    names = {line.split()[0] for line in LINES} - {"pytest"}
    missing = []
    for command in (each for each in COMMANDS if each.name in names):
        lines = [line.split() for line in LINES if line.startswith(f"{command.name} ")]
        given = {word.partition("=")[0] for words in lines for word in words}
        missing += [f"{command.name} {name}" for name in options_of(command.name) if name not in given | DESK]
    return missing


def options_of(name: str) -> list[str]:
    """Return the long options of a subcommand, and of those that it has itself."""
    found: list[str] = []
    for parser in _leaves(parser_of([name]), ()):
        if parser[0][:1] == (name,):
            found += [action.option_strings[-1] for action in parser[1]._actions if action.option_strings]
    return sorted({each for each in found if each.startswith("--")})


def _leaves(
    parser: argparse.ArgumentParser, name: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not inner:
        yield name, parser
    for action in inner:
        for word, each in action.choices.items():
            yield from _leaves(each, (*name, word))


if __name__ == "__main__":
    sys.exit(main())
