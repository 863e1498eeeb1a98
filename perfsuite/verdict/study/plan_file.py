"""Reads a study's plan from TOML; every mistake names the place, the value and what is accepted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from perfsuite.device.profile import find_profile, profile_names
from perfsuite.errors import DeviceError, PerfsuiteError
from perfsuite.verdict.study.plan import GivenLatency, StudyPlan, StudyRun, StudyTask
from perfsuite.verdict.study.plan_table import PlanTable
from perfsuite.verdict.study.token_latency import LEAST_S, MOST_S
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
        The file cannot be read or is no TOML, a field is missing, unknown or of another type, names repeat, the
        device is unknown, or a file of prompts cannot be read.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name the plan of a study") from error
    except (ValueError, RecursionError) as error:
        raise PerfsuiteError(f"{path}: is no TOML ({error})") from error
    return _plan(PlanTable(where=str(path), folder=path.parent, plain=plain))


def _plan(table: PlanTable) -> StudyPlan:
    table.allow(
        *("schema", "title", "scenario", "prompts", "n_gen", "replicates", "device", "threads"),
        *("reference", "task", "model"),
    )
    schema = table.plain.get("schema")
    if type(schema) is not int or schema != SCHEMA:  # true and 1.0 equal 1
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
        device=_device(table),
        n_threads=table.count("threads", 1) if "threads" in table.plain else None,
    )


def _device(table: PlanTable) -> str:
    name = table.text("device", "host")
    try:
        return find_profile(name).name
    except DeviceError:
        return table.reject("device", f"one of {', '.join(profile_names())}")


def _lengths(table: PlanTable) -> tuple[tuple[int, ...], int]:
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


def _task(table: PlanTable) -> StudyTask:
    table.allow("name", "metric", "chance")
    chance = table.number("chance", 0.0, "a share of 0 or more and below 1", least=0.0, below=1.0)
    return StudyTask(name=table.text("name"), metric=table.text("metric"), chance=chance)


def _runs(table: PlanTable) -> tuple[StudyRun, ...]:
    table.allow("name", "suite", "original", "run")
    original = table.text("original") if "original" in table.plain else None
    runs = tuple(_run(each, table, original) for each in table.tables("run"))
    if original is not None and not any(run.is_original for run in runs):
        table.reject("original", f"one of {', '.join(run.quantization for run in runs)}")
    return runs


def _run(table: PlanTable, model: PlanTable, original: str | None) -> StudyRun:
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


def _weights(table: PlanTable, default: str) -> str:
    """Return a name as it is, and a path from the plan's folder."""
    text = table.text("weights", default)
    return str(table.folder / text) if text.endswith(".gguf") or "/" in text else text


def _latency(table: PlanTable) -> GivenLatency:
    table.allow("prefill_s_per_token", "decode_s_per_token")
    accepted = f"a time above 0: {LEAST_S:g} s to {MOST_S:g} s"
    times = {
        name: table.number(name, None, accepted, least=LEAST_S, below=MOST_S)
        for name in ("prefill_s_per_token", "decode_s_per_token")
    }
    return GivenLatency(**times)


def _distinct(table: PlanTable, what: str, named: tuple[Any, ...]) -> tuple[Any, ...]:
    seen = [each.name for each in named]
    if repeated := [name for name in seen if seen.count(name) > 1]:
        raise PerfsuiteError(
            f"{table.where}: {what} {repeated[0]!r} occurs {seen.count(repeated[0])} times, expected once"
        )
    return named
