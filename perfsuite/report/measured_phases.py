"""What a ``run.json`` holds of llama.cpp's prefill and decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Outcome
from perfsuite.records.plain_names import plain_name
from perfsuite.records.run_json import read_plain_run
from perfsuite.workload.scenario import Scenario, find_scenario

_UNMEASURED = (Outcome.INVALID.value, Outcome.IMPOSSIBLE.value)

_PHASES = (Phase.EMBEDDING, Phase.PREFILL, Phase.DECODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPhases:
    """The samples of a run's phases with what was run."""

    path: Path
    #: Name of the weights, as in case ids.
    weights: str
    scenario: Scenario
    #: ISO 8601.
    started_at: str
    #: The engine's version and build, in words.
    engine: str
    #: Of the group ``llama``.
    fingerprint: Mapping[str, str]
    #: One a valid replicate; a token of decode; no phase that was not measured properly.
    samples_ns: Mapping[Phase, tuple[int, ...]]


def read_measured_phases(path: Path) -> MeasuredPhases:
    """Read a run.

    Raises PerfsuiteError where the file cannot be read, is no ``run.json`` of this schema, did not measure llama.cpp,
    or was slowed down on purpose.
    """
    plain = read_plain_run(path)
    if plain.get("injected"):
        raise PerfsuiteError(f"{path}: was slowed down on purpose (--perf-inject); name a run without")
    if "llama" not in plain.get("fingerprint", {}):
        raise PerfsuiteError(f"{path}: did not measure llama.cpp; run a phase first")
    try:
        return _measured(path, plain)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PerfsuiteError(f"{path}: cannot be used ({type(error).__name__}: {error}); run again") from error


def _measured(path: Path, plain: Mapping[str, Any]) -> MeasuredPhases:
    workload = str(plain["workload"])
    name, _, scenario = workload.rpartition("/")
    samples = {phase: _samples_ns(plain, f"phase/{workload}/{phase.value}") for phase in _PHASES}
    return MeasuredPhases(
        path=path,
        weights=plain_name(name, f"{path}: workload's model", PerfsuiteError),
        scenario=find_scenario(scenario),
        started_at=str(plain["started_at"]),
        engine=str(plain.get("subject", {}).get("llama", "")),
        fingerprint={str(key): str(value) for key, value in plain["fingerprint"]["llama"].items()},
        samples_ns={phase: found for phase, found in samples.items() if found},
    )


def _samples_ns(plain: Mapping[str, Any], case_id: str) -> tuple[int, ...]:
    return tuple(
        int(sample_ns)
        for case in plain["cases"]
        if case["id"] == case_id and case["outcome"] not in _UNMEASURED
        for sample_ns in case["samples_ns"]
    )
