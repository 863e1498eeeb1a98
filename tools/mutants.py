"""Changes the suite's own code in one place at a time, and counts how many of these mutants the tests notice.

    make mutants    # runs the tests for the lines that each of them runs, then this

The mutants are cosmic-ray's, without those in annotations, which nothing evaluates, and in the options of dataclasses.
Which are drawn depends on the seed and on their own file alone. Each is tried by the tests that run its line, those of
its own module first. A mutant is mounted over its file in a mount namespace of its own, so that the checkout is never
changed and several can run at once; this needs root, or user namespaces.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import coverage
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

#: What is mutated: the packages that decide.
PACKAGES = ("verdict", "records", "expectation", "trace", "device", "measure", "experiments")

#: How many test functions try a mutant at most, and for how long.
_N_TESTS, _LIMIT_S = 150, 180

_PYTEST = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change: the operator's n-th occurrence in a file."""

    path: str
    line: int
    operator: str
    occurrence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of a mutant: killed, survived, hung (killed as well), or untested where no test runs its line."""

    mutant: Mutant
    fate: str
    n_tests: int


def drawn(root: Path, packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Draw so many places, and one change for each."""
    places: dict[tuple[str, tuple[int, int]], list[Mutant]] = {}
    for package in packages:
        for path in sorted((root / "perfsuite" / package).rglob("*.py")):
            for mutant, start in _mutants_of(path, path.relative_to(root).as_posix()):
                places.setdefault((mutant.path, start), []).append(mutant)

    def rank(*words: object) -> bytes:
        return hashlib.sha256(" ".join(map(str, (seed, *words))).encode()).digest()

    chosen = sorted(places, key=lambda place: rank(*place))[:count]
    return [min(places[place], key=lambda each: rank(each.operator, each.occurrence)) for place in chosen]


def _mutants_of(path: Path, name: str) -> Iterator[tuple[Mutant, tuple[int, int]]]:
    source = path.read_text("utf-8")
    ignored = list(_unevaluated(ast.parse(source)))
    nodes = list(ast_nodes(get_ast(source)))
    for operator_name in sorted(operator_names()):
        try:
            operator = get_operator(operator_name)()
        except TypeError:  # one that wants arguments of its own
            continue
        occurrence = -1
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                occurrence += 1
                if not any(first <= start < last for first, last in ignored):
                    yield Mutant(path=name, line=start[0], operator=operator_name, occurrence=occurrence), start


def _unevaluated(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    for node in ast.walk(tree):
        spans = [getattr(node, name, None) for name in ("annotation", "returns")]
        spans += [each for each in getattr(node, "decorator_list", ()) if "dataclass" in ast.dump(each)]
        for found in spans:
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


@cache
def _contexts(root: Path, path: str) -> dict[int, list[str]]:
    """The test functions that run each line of a file, as ``tests/x/test_y.py::test_z``."""
    stored = coverage.CoverageData(str(root / ".coverage"))
    stored.read()
    known = stored.contexts_by_lineno(path) or stored.contexts_by_lineno(str(root / path))
    return {line: sorted({test for name in names if (test := _test(root, name))}) for line, names in known.items()}


def _test(root: Path, context: str) -> str | None:
    """``tests.x.test_y.test_z`` or a class's method of it; None for what is no test."""
    parts = context.split(".")
    for number in range(len(parts) - 1, 0, -1):
        path = "/".join(parts[:number]) + ".py"
        if (root / path).is_file() and f"def {parts[-1]}(" in (root / path).read_text("utf-8"):
            return "::".join([path, *parts[number:]])
    return None


def tests_for(root: Path, mutant: Mutant) -> list[str]:
    """The test functions that try a mutant, the nearest first."""
    below = Path(mutant.path).relative_to("perfsuite")
    own = Path("tests", below.parent, f"test_{below.name}").as_posix()
    found = _contexts(root, mutant.path).get(mutant.line, [])
    near = [own, Path("tests", below.parent).as_posix() + "/", f"tests/{below.parts[0]}/"]

    def distance(test: str) -> tuple[int, str]:
        return next((number for number, prefix in enumerate(near) if test.startswith(prefix)), len(near)), test

    if found:
        return sorted(found, key=distance)[:_N_TESTS]
    # What is run at import, by whoever imports it first, or in processes alone.
    return [place for place in (own, Path(own).parent.as_posix()) if (root / place).exists()][:1]


def fate_of(root: Path, mutant: Mutant) -> Fate:
    """Run the tests of a mutant."""
    tests = tests_for(root, mutant)
    if not tests:
        return Fate(mutant=mutant, fate="untested", n_tests=0)
    source = (root / mutant.path).read_text("utf-8")
    changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    with tempfile.TemporaryDirectory(prefix="mutant.") as folder:
        place = Path(folder, "mutant.py")
        place.write_text(changed, "utf-8")
        mount = f'mount --bind "{place}" "{root / mutant.path}" && exec "$@"'
        own = ["--user", "--map-root-user"] if os.geteuid() else []
        pytest = [f"{root}/.venv/bin/python", "-m", "pytest", *_PYTEST, f"--basetemp={folder}/tests", *tests]
        command = [
            "unshare",
            *own,
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            mount,
            "sh",
            *pytest,
        ]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        with (
            tempfile.TemporaryFile() as output,
            subprocess.Popen(
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            ) as running,
        ):
            try:
                status = running.wait(_LIMIT_S)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                return Fate(mutant=mutant, fate="hung", n_tests=len(tests))
    return Fate(mutant=mutant, fate="survived" if status in (0, 5) else "killed", n_tests=len(tests))


def _known(path: Path) -> Iterator[Fate]:
    """What an earlier run, which may have been interrupted, has found."""
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        plain = json.loads(line)
        yield Fate(mutant=Mutant(**plain.pop("mutant")), **plain)


def main() -> int:
    """Draw, try, count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="how many mutants (default: 500)")
    parser.add_argument("--seed", type=int, default=21, help="which ones (default: 21)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="how many at once (default: all processors)"
    )
    parser.add_argument("--package", action="append", choices=PACKAGES, help="of this package only; repeatable")
    parser.add_argument(
        "--root", type=Path, default=Path.cwd(), help="the checkout, with .venv and .coverage (default: .)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="the fate of each; those in it are not tried again (default: build/mutants-COMMIT.jsonl)",
    )
    options = parser.parse_args()
    root = options.root.resolve()
    if options.output is None:  # another commit has other tests, so that nothing of it counts
        commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, check=True)
        options.output = Path(f"build/mutants-{commit.stdout.decode().strip()}.jsonl")
    mutants = drawn(root, options.package or PACKAGES, options.count, options.seed)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    fates = [fate for fate in _known(options.output) if fate.mutant in mutants]
    tried = {fate.mutant for fate in fates}
    with ThreadPoolExecutor(options.jobs) as pool, options.output.open("a", encoding="utf-8") as output:
        for fate in pool.map(lambda mutant: fate_of(root, mutant), [each for each in mutants if each not in tried]):
            fates.append(fate)
            output.write(json.dumps(asdict(fate)) + "\n")
            output.flush()
            if fate.fate in ("survived", "untested"):
                each = fate.mutant
                print(
                    f"{fate.fate:9} {each.path}:{each.line} {each.operator} {each.occurrence} ({fate.n_tests} tests)",
                    flush=True,
                )
    for package in (*PACKAGES, ""):
        counts = Counter(fate.fate for fate in fates if fate.mutant.path.startswith(f"perfsuite/{package}"))
        n_killed, n_all = counts["killed"] + counts["hung"], counts.total()
        if n_all:
            print(f"{package or 'all':12} {n_killed} of {n_all} killed ({n_killed / n_all:.1%})  {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
