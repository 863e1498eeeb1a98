"""Tells whether the same work takes as long when it is asked for over ssh as when it is run here: in pairs of runs.

    python tools/compare_links.py --pairs 12 --json links.json
    python tools/compare_links.py --pairs 6 --backend opencl --scenario p16-g4 --replicates 2 [--by-bundle]

A pair is two runs of ``pytest --device``, one after the other, in an order that is drawn: one reaches this machine over
ssh, the other has --perf-address=local. Without an address an sshd is started on a loopback port, and both sides use
the files of its home; with --by-bundle the board has a bundle and no Python, and both sides run the llama.cpp of it. An
address that is given must be this very machine's, set up by 'perfsuite devices setup'. What counts of each run is the
median of its replicates. A ratio is ssh over local; its interval is that of the signed-rank test over the pairs, of
each phase by itself. The cases and kernels of both sides are compared, too, and their verdicts.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the test board

from perfsuite.device.reach import Reach  # noqa: E402
from perfsuite.errors import MeasurementError, PerfsuiteError  # noqa: E402
from perfsuite.units import format_ns  # noqa: E402
from perfsuite.verdict.signed_rank import compare_pairs  # noqa: E402
from tools.link_sides import case_lines, compared_cases, loopback, verdicts_of  # noqa: E402

#: The device's name in the profile that is made for it.
_NAME = "links"

#: Longest that a run may take, s, and how often a pair is tried that others have disturbed.
_LIMIT_S = 1800.0
_N_TRIES = 3

#: What pytest is told of each backend; all cases of the OpenCL backend come from the same processes as its phases.
_BACKENDS = {"cpu": ("-kphase",), "opencl": ("-kphase or operator or engine_kernel", "--backend=opencl")}

#: By phase: the median of a run, ns.
Medians = Mapping[str, int]


class DisturbedError(MeasurementError):
    """A run was measured, and cannot be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where both sides are started."""

    folder: Path
    #: What pytest is told on both sides.
    options: tuple[str, ...]
    #: The home whose files both sides use; None leaves it to each.
    home: Path | None
    #: What the local side is started with beside that.
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What counts of one run."""

    medians: Medians
    #: By case.
    verdicts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One phase on both sides; every ratio is ssh over local."""

    phase: str
    local_ns: int
    ssh_ns: int
    ratio: float
    #: Two-sided; None where the pairs are too few.
    lower_ratio: float | None
    upper_ratio: float | None
    n_pairs: int
    #: Of each pair, in order.
    pair_ratios: tuple[float, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pairs and print what they say; return the exit code."""
    options = parsed(arguments)
    try:
        with desk_of(options) as desk:
            orders = drawn_orders(options.pairs, random.Random(options.seed))
            pairs = [pair_of(desk, number, ssh_first) for number, ssh_first in enumerate(orders)]
        found = differences([(ssh.medians, local.medians) for ssh, local in pairs], options.alpha)
        cases = compared_cases((ssh.verdicts, local.verdicts) for ssh, local in pairs)
    except PerfsuiteError as error:
        print(f"{Path(__file__).name}: error: {error}", file=sys.stderr)
        return 2
    if options.json is not None:
        told = {"alpha": options.alpha, "ssh_first": orders, "phases": [asdict(each) for each in found]}
        told["cases"] = asdict(cases)
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    print(table(found))
    print(*case_lines(cases), sep="\n")
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--address", metavar="[USER@]HOST", help="of an sshd on this machine (default: one of its own)")
    parser.add_argument("--port", type=int, help="of that sshd (default: OpenSSH's own configuration)")
    parser.add_argument("--model", default="smollm2-135m-q8_0", help="name of the catalogue or a GGUF")
    parser.add_argument("--scenario", default="siso")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=5, help="fresh processes of each run (default 5)")
    parser.add_argument("--backend", choices=("cpu", "opencl"), default="cpu", help="of llama.cpp (default cpu)")
    parser.add_argument("--by-bundle", action="store_true", help="a board without Python, set up by a bundle alone")
    parser.add_argument("--alpha", type=float, default=0.05, help="an interval holds the truth with 1 - ALPHA")
    parser.add_argument("--seed", type=int, help="of the order (default: another one each time)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the same, and each pair, as JSON")
    options = parser.parse_args(arguments)
    if options.pairs < 1 or not 0 < options.alpha < 1:
        parser.error(f"--pairs={options.pairs} --alpha={options.alpha}: expected a pair or more, and 0 < ALPHA < 1")
    if options.by_bundle and options.address is not None:
        parser.error("--by-bundle: is for the sshd that is started here; set up the one at --address yourself")
    return options


@contextmanager
def desk_of(options: argparse.Namespace) -> Iterator[Desk]:
    """Make the folder from which both sides are started, with the profile; and the sshd where none was named."""
    words = (f"--model={options.model}", f"--scenario={options.scenario}", f"--threads={options.threads}")
    told = (*words, f"--perf-replicates={options.replicates}", *_BACKENDS[options.backend])
    with tempfile.TemporaryDirectory(prefix="perfsuite-links-") as folder:
        if options.address is not None:
            write_profile(Path(folder), Reach(way="ssh", address=options.address, port=options.port))
            yield Desk(folder=Path(folder), options=told, home=None)
            return
        with loopback(by_bundle=options.by_bundle) as board:
            write_profile(Path(folder), board.reach)
            board.set_up(Path(folder), _NAME)
            yield Desk(folder=Path(folder), options=told, home=board.home, environment=board.environment)


def write_profile(folder: Path, reach: Reach) -> None:
    """Describe the way there as a profile of the user's own."""
    usual = asdict(Reach())
    known = {name: value for name, value in asdict(reach).items() if name == "way" or value != usual[name]}
    lines = ['description = "this machine over ssh"', 'extends = "generic-ssh"', "[reach]"]
    (folder / "devices").mkdir()
    text = "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in known.items())])
    (folder / "devices" / f"{_NAME}.toml").write_text(text + "\n")


def drawn_orders(n_pairs: int, chance: random.Random) -> list[bool]:
    """Draw of which pairs ssh is first: of half of them, so that neither side gains by what drifts."""
    orders = [number % 2 == 0 for number in range(n_pairs)]
    chance.shuffle(orders)
    return orders


def pair_of(desk: Desk, number: int, ssh_first: bool) -> tuple[Run, Run]:
    """Run both sides, both once more where one was disturbed; return what ssh and what local has measured."""
    for attempt in range(_N_TRIES):
        try:
            pair = _sides(desk, f"{number}.{attempt}", ssh_first)
        except DisturbedError as error:
            told = f"pair {number + 1} is tried again" if attempt + 1 < _N_TRIES else "given up"
            print(f"{told}: {error}", file=sys.stderr, flush=True)
        else:
            print(f"pair {number + 1} is done", file=sys.stderr, flush=True)
            return pair
    raise MeasurementError(f"pair {number + 1} was disturbed {_N_TRIES} times; free the machine and run again")


def _sides(desk: Desk, name: str, ssh_first: bool) -> tuple[Run, Run]:
    found = {}
    for side in ("ssh", "local") if ssh_first else ("local", "ssh"):
        found[side] = run_of(desk, desk.folder / f"{name}-{side}", is_local=side == "local")
    return found["ssh"], found["local"]


def run_of(desk: Desk, folder: Path, *, is_local: bool) -> Run:
    """Run pytest once."""
    plain = ["-m", "pytest", "-pno:cacheprovider", "--baseline=off", f"--device={_NAME}"]
    command = [sys.executable, *plain, f"--perf-dir={folder}", *desk.options]
    environment = dict(os.environ)
    if is_local:
        command.append("--perf-address=local")
        if desk.home is not None:
            environment |= {"HOME": str(desk.home), **desk.environment}
            environment.pop("XDG_CACHE_HOME", None)
    told = subprocess.run(
        command, cwd=desk.folder, env=environment, capture_output=True, text=True, check=False, timeout=_LIMIT_S
    )
    path = folder / "run.json"
    return Run(medians=medians_of(path, told.stdout + told.stderr), verdicts=verdicts_of(path))


def medians_of(path: Path, said: str) -> Medians:
    """Return the medians of a run's phases, none of which may lack one.

    Raises
    ------
    MeasurementError
        There is no such run, or it has no phases.
    DisturbedError
        One of its phases cannot be trusted.
    """
    if not path.exists():
        raise MeasurementError(f"a run has failed: {last_line(said)}")
    cases = [each for each in json.loads(path.read_text())["cases"] if each["id"].startswith("phase/")]
    if not cases:
        raise MeasurementError(f"a run has no phases: {last_line(said)}")
    for each in cases:
        if each["measured_ns"] is None or each["outcome"] == "invalid":
            raise DisturbedError(f"{each['id']}: {each['reason']}")
    return {each["id"].rpartition("/")[2]: each["measured_ns"] for each in cases}


def last_line(said: str) -> str:
    """Return the last line that was said."""
    return next((line for line in reversed(said.splitlines()) if line.strip()), "it said nothing")


def differences(pairs: Sequence[tuple[Medians, Medians]], alpha: float) -> list[Difference]:
    """Compare the sides phase by phase; each bound has half of `alpha`."""
    return [difference(phase, pairs, alpha) for phase in pairs[0][0]]


def difference(phase: str, pairs: Sequence[tuple[Medians, Medians]], alpha: float) -> Difference:
    """Compare one phase."""
    ssh_ns = [ssh[phase] for ssh, _ in pairs]
    local_ns = [local[phase] for _, local in pairs]
    change = compare_pairs(local_ns, ssh_ns, alpha=alpha / 2)
    return Difference(
        phase=phase,
        local_ns=round(median(local_ns)),
        ssh_ns=round(median(ssh_ns)),
        ratio=change.estimate_ratio,
        lower_ratio=change.lower_ratio or None,
        upper_ratio=None if math.isinf(change.upper_ratio) else change.upper_ratio,
        n_pairs=change.n_pairs,
        pair_ratios=tuple(ssh / local for ssh, local in zip(ssh_ns, local_ns, strict=True)),
    )


def table(found: Sequence[Difference]) -> str:
    """Return a line for each phase."""
    rows = [("phase", "local", "ssh", "ssh/local", "interval"), *map(row, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, each, widths)).rstrip() for each in rows)


def row(each: Difference) -> tuple[str, ...]:
    """Return the cells of one phase."""
    interval = f"too few pairs ({each.n_pairs})"
    if each.lower_ratio is not None and each.upper_ratio is not None:
        interval = f"{each.lower_ratio:.4f} to {each.upper_ratio:.4f} ({each.n_pairs} pairs)"
    times = (format_ns(each.local_ns), format_ns(each.ssh_ns))
    return (each.phase, *times, f"{each.ratio:.4f}", interval)


if __name__ == "__main__":
    sys.exit(main())
