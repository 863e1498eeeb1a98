"""Reads a study's plan from TOML; every mistake names the place, the value and what is accepted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.errors import PerfsuiteError
from perfsuite.verdict.study.plan import GivenLatency, StudyPlan, StudyRun, StudyTask
from perfsuite.workload.prompts import prompt_lengths
from perfsuite.workload.scenario import find_scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The schema that is read.
SCHEMA = 1

_DEFAULT_SCENARIO = "p64-g16"
_DEFAULT_GEN, _DEFAULT_PROCESSES = 16, 5


def read_plan(path: Path) -> StudyPlan:
    """Read a plan; relative paths in it are relative to its own folder.

    Raises
    ------
    PerfsuiteError
        The file cannot be read or is no TOML, a field is missing, unknown or of another type, names repeat, or a file
        of prompts cannot be read.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name the plan of a study") from error
    except ValueError as error:
        raise PerfsuiteError(f"{path}: is no TOML ({error})") from error
    return _plan(_Table(where=str(path), folder=path.parent, plain=plain))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table of the file, and where it stands."""

    where: str
    folder: Path
    plain: Mapping[str, Any]

    def allow(self, *names: str) -> None:
        """Refuse fields of other names."""
        unknown = [name for name in self.plain if name not in names]
        if unknown:
            raise PerfsuiteError(f"{self.where}: field {unknown[0]!r} is unknown; accepted are {', '.join(names)}")

    def reject(self, name: str, accepted: str) -> NoReturn:
        """Refuse a field's value, or that it is missing."""
        seen = f"is {self.plain[name]!r}" if name in self.plain else "is missing"
        raise PerfsuiteError(f"{self.where}: {name} {seen}, expected {accepted}")

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text that is not empty."""
        value = self.plain.get(name, default)
        return value if isinstance(value, str) and value else self.reject(name, "a text that is not empty")

    def count(self, name: str, default: int) -> int:
        """Return a whole number above 0."""
        value = self.plain.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        return self.reject(name, "a whole number of 1 or more")

    def number(self, name: str, default: float | None, accepted: str, *, least: float, below: float) -> float:
        """Return a number of `least` or more and below `below`."""
        value = self.plain.get(name, default)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and least <= value < below else self.reject(name, accepted)

    def paths(self, name: str) -> tuple[Path, ...]:
        """Return one path or several."""
        value = self.plain.get(name)
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
            self.reject(name, "a path, or a list of paths")
        return tuple(self.folder / each for each in texts)

    def tables(self, name: str) -> tuple[_Table, ...]:
        """Return the tables of a list, at least one."""
        value = self.plain.get(name)
        if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
            self.reject(name, f"at least one table [[{name}]]")
        return tuple(self._inner(f"{name} {number}", each) for number, each in enumerate(value, start=1))

    def table(self, name: str) -> _Table:
        """Return a table that must be there."""
        value = self.plain.get(name)
        return self._inner(name, value) if isinstance(value, dict) else self.reject(name, f"a table [{name}]")

    def _inner(self, place: str, plain: Mapping[str, Any]) -> _Table:
        return _Table(where=f"{self.where}: {place}", folder=self.folder, plain=plain)


def _plan(table: _Table) -> StudyPlan:
    table.allow(
        *("schema", "title", "scenario", "prompts", "n_gen", "replicates", "device", "threads"),
        *("reference", "task", "model"),
    )
    if table.plain.get("schema") != SCHEMA:
        table.reject("schema", str(SCHEMA))
    reference = table.table("reference")
    reference.allow("name", "accuracies")
    lengths, n_gen = _lengths(table)
    return StudyPlan(
        title=table.text("title", "Model-suite study"),
        tasks=_distinct(table, "task", tuple(_task(each) for each in table.tables("task"))),
        runs=_distinct(table, "run", tuple(run for each in table.tables("model") for run in _runs(each))),
        reference=reference.text("name"),
        reference_accuracies=reference.paths("accuracies"),
        prompt_lengths=lengths,
        n_gen=n_gen,
        n_processes=table.count("replicates", _DEFAULT_PROCESSES),
        device=table.text("device", "host"),
        n_threads=table.count("threads", 1) if "threads" in table.plain else None,
    )


def _lengths(table: _Table) -> tuple[tuple[int, ...], int]:
    """Return the lengths of the prompts and of the generation: of a scenario, or of a file of prompts."""
    if "prompts" in table.plain:
        if "scenario" in table.plain:
            table.reject("scenario", "to be left out beside prompts")
        return prompt_lengths(table.folder / table.text("prompts")), table.count("n_gen", _DEFAULT_GEN)
    if "n_gen" in table.plain:
        table.reject("n_gen", "to be left out beside a scenario, which has its own")
    scenario = find_scenario(table.text("scenario", _DEFAULT_SCENARIO))
    if not scenario.n_prompt or not scenario.n_gen or scenario.n_depth:
        table.reject("scenario", "a prompt and a generation, without a depth")
    return (scenario.n_prompt,), scenario.n_gen


def _task(table: _Table) -> StudyTask:
    table.allow("name", "metric", "chance")
    chance = table.number("chance", 0.0, "a share of 0 or more and below 1", least=0.0, below=1.0)
    return StudyTask(name=table.text("name"), metric=table.text("metric"), chance=chance)


def _runs(table: _Table) -> tuple[StudyRun, ...]:
    table.allow("name", "suite", "original", "run")
    original = table.text("original") if "original" in table.plain else None
    runs = tuple(_run(each, table, original) for each in table.tables("run"))
    if original is not None and not any(run.is_original for run in runs):
        table.reject("original", f"one of {', '.join(run.quantization for run in runs)}")
    return runs


def _run(table: _Table, model: _Table, original: str | None) -> StudyRun:
    table.allow("quantization", "weights", "accuracies", "latency", "run_file")
    name, quantization = model.text("name"), table.text("quantization")
    if "latency" in table.plain and "run_file" in table.plain:
        table.reject("run_file", "to be left out beside a latency")
    return StudyRun(
        model=name,
        suite=model.text("suite", name),
        quantization=quantization,
        is_original=quantization == original,
        weights=_weights(table, f"{name}-{quantization}"),
        accuracies=table.paths("accuracies"),
        latency=_latency(table.table("latency")) if "latency" in table.plain else None,
        run_file=table.folder / table.text("run_file") if "run_file" in table.plain else None,
    )


def _weights(table: _Table, default: str) -> str:
    """Return a name as it is, and a path from the plan's folder."""
    text = table.text("weights", default)
    return str(table.folder / text) if text.endswith(".gguf") or "/" in text else text


def _latency(table: _Table) -> GivenLatency:
    table.allow("prefill_s_per_token", "decode_s_per_token")
    # The least number above 0 refuses 0 as well.
    times = {
        name: table.number(name, None, "a time above 0", least=sys.float_info.min, below=float("inf"))
        for name in ("prefill_s_per_token", "decode_s_per_token")
    }
    return GivenLatency(**times)


def _distinct(table: _Table, what: str, named: tuple[Any, ...]) -> tuple[Any, ...]:
    seen = [each.name for each in named]
    if repeated := [name for name in seen if seen.count(name) > 1]:
        raise PerfsuiteError(
            f"{table.where}: {what} {repeated[0]!r} occurs {seen.count(repeated[0])} times, expected once"
        )
    return named
