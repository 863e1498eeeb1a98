#!/usr/bin/env python
"""Runs the plugin's tests from the wheel beside each version of Python, pytest and pytest-benchmark, and other plugins.

python tools/matrix.py                                  every Python from 3.10 on that is installed, then the plugins
python tools/matrix.py --python python3.12              this interpreter alone; --python '' leaves them out
python tools/matrix.py --no-plugins -- tests/plugin     other tests than the usual ones

Prints a table for docs/results.md; exit code 1 where anything failed. 'make env' first: its llama-cpp-python is taken.
Environments and what pytest said are kept in build/matrix/.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "matrix"

PYTHONS = tuple(f"python3.{minor}" for minor in range(10, 15))
#: What is tried on each Python: versions of pytest and pytest-benchmark, '' for the newest.
VERSIONS = (("~=8.4.0", "~=5.1.0"), ("~=9.0.0", ""), ("", "~=5.1.0"), ("", ""))

#: Options, cases, the fixture, and what pytest-benchmark sees; a minute or so.
TESTS = ("tests/plugin/test_registration.py", "tests/plugin/test_hooks_conventions.py", "tests/plugin/test_origin.py")
_EXTRAS = "benchmark,history,shapes"
_NEEDS = ("pytest-xdist", "pytest-random-order", "setuptools<81")
_USUAL = ("-q", "--import-mode=importlib", "-p", "pytester", "-p", "no:cacheprovider", "-m", "not measures")

#: Beside pytest-benchmark, xdist and Hypothesis; distributions of PyPI. Most used of those that need no service.
PLUGINS = (
    *("anyio", "pytest-aiohttp", "pytest-asyncio", "pytest-bdd", "pytest-check", "pytest-cov", "pytest-django"),
    *("pytest-docker", "pytest-env", "pytest-flask", "pytest-forked", "pytest-freezer", "pytest-html"),
    *("pytest-httpx", "pytest-instafail", "pytest-json-report", "pytest-metadata", "pytest-mock", "pytest-order"),
    *("pytest-playwright", "pytest-profiling", "pytest-randomly", "pytest-recording", "pytest-repeat"),
    *("pytest-rerunfailures", "pytest-socket", "pytest-split", "pytest-subtests", "pytest-sugar", "pytest-testmon"),
    *("pytest-timeout", "pytest-xprocess"),
)

#: A run that measures this machine, in seconds.
_MEASURE = (
    *("--perf-model=smollm2-135m-l2-q8_0", "--perf-scenario=p4-g2", "--perf-threads=1", "--perf-replicates=2"),
    *("--perf-baseline=off", "--perf-history=off", "--perf-calibrate=off", "--perf-allow-undecided", "-k", "phase"),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run of pytest."""

    place: str
    asked: str
    code: int
    told: str

    @property
    def row(self) -> str:
        return f"| {self.place} | {self.asked} | {'ok' if self.code == 0 else f'exit code {self.code}'} | {self.told} |"


class Environment:
    """A virtual environment with the wheel."""

    def __init__(self, python: str, name: str, wheel: Path) -> None:
        self._bin = WORK / name / "bin"
        if not self._bin.is_dir():
            subprocess.run([python, "-m", "venv", str(WORK / name)], check=True)
        self.install(f"{wheel}[{_EXTRAS}]", *_NEEDS)

    def install(self, *requirements: str) -> None:
        links = ("--find-links", str(ROOT / ".venv" / "wheels"), "--only-binary", "llama-cpp-python")
        usual = ("-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q", "--upgrade")
        subprocess.run([self._bin / "python", *usual, *links, *requirements], check=True, stdout=sys.stderr)

    def remove(self, name: str) -> None:
        subprocess.run([self._bin / "python", "-m", "pip", "uninstall", "-q", "-y", name], check=True)

    def versions(self, *names: str) -> str:
        """Return the versions of the interpreter and of distributions."""
        code = "import platform, sys; from importlib.metadata import version\n"
        code += "print('Python', platform.python_version(), *(f'{n} {version(n)}' for n in sys.argv[1:]), sep=', ')"
        told = subprocess.run([self._bin / "python", "-c", code, *names], check=True, capture_output=True, text=True)
        return told.stdout.strip().replace("Python, ", "Python ", 1)

    def run(self, place: str, asked: str, words: Sequence[str]) -> Outcome:
        """Run pytest beside the wheel, where the sources of the suite are not."""
        line = [self._bin / "python", "-m", "pytest", *words]
        done = subprocess.run(line, cwd=WORK / "tree", capture_output=True, text=True, check=False)
        log = WORK / f"{re.sub(r'[^A-Za-z0-9.]+', '-', f'{place} {asked}')}.log"
        log.write_text(done.stdout + done.stderr)
        found = re.findall(r"\d+ (?:passed|failed|skipped|error)[^\n=]*", done.stdout)
        outcome = Outcome(place=place, asked=asked, code=done.returncode, told=found[-1].strip() if found else str(log))
        print(outcome.row, flush=True)
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="*", default=PYTHONS, metavar="NAME")
    parser.add_argument("--no-plugins", action="store_true")
    parser.add_argument("tests", nargs="*", default=TESTS, metavar="TEST")
    options = parser.parse_args()
    wheel = _made_wheel()
    pythons = list(filter(None, map(_found, filter(None, options.python))))
    print("| environment | asked | came out | pytest says |\n|---|---|---|---|", flush=True)
    outcomes = [each for python in pythons for each in _beside_versions(python, wheel, options.tests)]
    if not options.no_plugins:
        outcomes += _beside_plugins(pythons[-1] if pythons else sys.executable, wheel, options.tests)
    return int(not outcomes or any(each.code for each in outcomes))


def _made_wheel() -> Path:
    shutil.rmtree(WORK / "tree", ignore_errors=True)
    (WORK / "tree").mkdir(parents=True)
    for name in ("tests", "docs", "tools"):
        shutil.copytree(ROOT / name, WORK / "tree" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for old in WORK.glob("*.whl"):
        old.unlink()
    line = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(WORK), str(ROOT)]
    subprocess.run(line, check=True, stdout=sys.stderr)
    return next(WORK.glob("perfsuite-*.whl"))


def _found(name: str) -> str | None:
    """Return where an interpreter is that starts, in PATH or of pyenv; a shim may stand for none."""
    for path in (shutil.which(name), *map(str, (Path.home() / ".pyenv" / "versions").glob(f"*/bin/{name}"))):
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    print(f"{name}: is not installed", file=sys.stderr)
    return None


def _beside_versions(python: str, wheel: Path, tests: Sequence[str]) -> list[Outcome]:
    asked = [python, "-c", "import platform; print(platform.python_version())"]
    version = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    environment, outcomes = Environment(python, f"python{version}", wheel), []
    for pytest, benchmark in VERSIONS:
        environment.install(f"pytest{pytest}", f"pytest-benchmark{benchmark}")
        place = environment.versions("pytest", "pytest-benchmark")
        outcomes.append(environment.run(place, "tests", (*_USUAL, *tests)))
    return outcomes


def _beside_plugins(python: str, wheel: Path, tests: Sequence[str]) -> list[Outcome]:
    environment = Environment(python, "plugins", wheel)
    environment.install("pytest", *PLUGINS)
    print(environment.versions(*PLUGINS), file=sys.stderr)
    place = f"{environment.versions('pytest')}, {len(PLUGINS)} plugins"
    outcomes = [
        environment.run(place, "--perf-device=host", ("--perf-device=host", *_MEASURE)),
        environment.run(place, "--device=host", ("--device=host", "-p", "no:playwright", *_MEASURE)),
    ]
    environment.remove("pytest-playwright")  # runs within tests have --device
    return [*outcomes, environment.run(f"{place}, not playwright", "tests", (*_USUAL, *tests))]


if __name__ == "__main__":
    sys.exit(main())
