"""Writes ``run.json``: everything that a run measured and concluded, and the tokens a second of its phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.records.codec import to_plain
from perfsuite.records.events import PROMPT_PHASES, Phase
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RUN_NAME, SCHEMA, RunFile, written_name
from perfsuite.records.whole_file import write_json
from perfsuite.report.words import engine_words
from perfsuite.units import NS_PER_S, format_ns, format_tokens_per_s
from perfsuite.workload.scenario import find_scenario


def tokens_per_s(judgement: Judgement) -> float | None:
    """Return the measured speed of a prompt or of decode; None of other cases, and where it is not known."""
    return token_rate(judgement, judgement.measured_ns)


def timed(judgement: Judgement, time_ns: int | None) -> str:
    """Return a time of the case, with its tokens a second where it has such: ``34.8 ms (28.7 tokens/s)``."""
    rate = token_rate(judgement, time_ns)
    return format_ns(time_ns) if rate is None else f"{format_ns(time_ns)} ({format_tokens_per_s(rate)} tokens/s)"


def token_rate(judgement: Judgement, time_ns: int | None) -> float | None:
    """Return the tokens a second of a prompt or of decode that takes a time; None of other cases."""
    n_tokens = _n_tokens(judgement)
    return n_tokens * NS_PER_S / time_ns if n_tokens and time_ns else None


def _n_tokens(judgement: Judgement) -> int | None:
    """Return the tokens of a decode step or of a prompt; those of several prompts have no one number."""
    if judgement.kind != "phase":
        return None
    *_, scenario, phase = ("", *judgement.case_id.split("/"))
    if phase == Phase.DECODE.value:
        return 1
    return _n_prompt(scenario) if phase in {each.value for each in PROMPT_PHASES} else None


def _n_prompt(scenario: str) -> int | None:
    try:
        return find_scenario(scenario).n_prompt
    except PerfsuiteError:
        return None


def write_run(run: RunFile, run_dir: Path) -> Path:
    """Write ``run.json`` into the run's folder; return its path."""
    path = run_dir / RUN_NAME
    write_json(path, plain_run(run), MeasurementError)
    return path


def plain_run(run: RunFile) -> dict[str, Any]:
    """Return the run as JSON-able values."""
    plain = _plain(run)
    origin, attribution = plain.pop("origin"), plain.pop("attribution")
    return {
        "schema": SCHEMA,
        **origin,
        **plain,
        "ceilings": run.ceilings.to_plain() if run.ceilings else None,
        "outputs": to_plain(run.outputs),
        "duration_s": {"total": round(sum(run.durations_s.values()), 3), **run.durations_s},
        "uniform_shift": attribution["uniform_shift"],
        "attribution": attribution["phases"],
        "cases": [plain_case(judgement) for judgement in run.judgements],
    }


def run_facts(run: RunFile) -> dict[str, str | None]:
    """Return what all cases of a run share, by the names that files of other tools have for it."""
    return {
        "run_id": run.origin.run_id,
        "started_at": run.started_at,
        "device": run.device,
        "board": run.origin.kept_by,
        "workload": run.workload,
        "engine": engine_words(run.subjects),
        "commit": run.origin.commit.sha if run.origin.commit else None,
        "against": run.against,
        "suite_version": run.suite_version,
    }


def plain_case(judgement: Judgement) -> dict[str, Any]:
    """Return one case as JSON-able values."""
    return {**_plain(judgement), "tokens_per_s": tokens_per_s(judgement)}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {written_name(each.name): _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
