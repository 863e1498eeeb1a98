"""Reads from a ``run.json`` what baselines need of it: a session for each group, and what cannot be a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import BaselineError
from perfsuite.records.case_groups import group_of
from perfsuite.records.codec import rebuilt
from perfsuite.records.events import KeptOutputs
from perfsuite.records.fingerprint import ENGINE, Fingerprint
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_json import read_plain_run
from perfsuite.records.run_origin import BoardName
from perfsuite.records.whole_set import plain_name
from perfsuite.verdict.entry import StoredSession

#: What was not measured properly is no reference.
REJECTED = (Outcome.INVALID, Outcome.IMPOSSIBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """What a run measured of one group."""

    #: Name of the group's file of baselines.
    name: str
    fingerprint: Fingerprint
    session: StoredSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What baselines need of a run."""

    path: Path
    device: str
    recorded_at: str
    #: Whether something was slowed down on purpose.
    is_injected: bool
    #: Whether somebody broke the run off.
    is_interrupted: bool
    #: What pairs were measured against; None where the run stands by itself.
    against: str | None
    #: Identity of the board that it was measured on over a link; None of a run on the machine itself.
    board: str | None
    groups: tuple[RecordedGroup, ...]
    #: Cases that are left out, with their outcome.
    rejected: Mapping[str, str]


def read_run(path: Path) -> RecordedRun:
    """Read a run.

    Raises BaselineError: the file is missing, is not a ``run.json`` of this schema, or lacks a field.
    """
    plain = read_plain_run(path, BaselineError)
    try:
        return _run(path, plain)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(f"{path}: cannot be used ({type(error).__name__}: {error}); run again") from error


def require_reference(run: RecordedRun) -> None:
    """Raise a `BaselineError` where a run must not become a reference, or holds nothing that could."""
    if run.is_injected:
        raise BaselineError(f"{run.path}: was slowed down on purpose (--perf-inject), and is no reference; run without")
    if run.is_interrupted:
        raise BaselineError(f"{run.path}: was interrupted, and is no reference; run again")
    if run.against is not None:
        raise BaselineError(
            f"{run.path}: was measured in pairs against {run.against}, and is no reference; run without --against"
        )
    if not run.groups:
        rejected = f", {len(run.rejected)} were rejected" if run.rejected else ""
        raise BaselineError(f"{run.path}: holds no valid case{rejected}; run again")


def _run(path: Path, plain: Mapping[str, Any]) -> RecordedRun:
    rejected = {
        each["id"]: each["outcome"]
        for each in plain["cases"]
        if Outcome(each["outcome"]) in REJECTED or 0 in each["samples_ns"]
    }
    samples: dict[str, dict[str, tuple[int, ...]]] = {}
    for each in plain["cases"]:
        if each["id"] not in rejected and each["samples_ns"]:
            of_group = samples.setdefault(group_of(each["kind"], plain["fingerprint"]), {})
            of_group[each["id"]] = tuple(int(ns) for ns in each["samples_ns"])
    return RecordedRun(
        path=path,
        device=plain_name(str(plain["device"]), f"{path}: device", BaselineError),
        recorded_at=str(plain["started_at"]),
        is_injected=bool(plain.get("injected", False)),
        is_interrupted=bool(plain.get("interrupted", False)),
        against=plain.get("against"),
        board=BoardName(**plain["board"]).kept_by if plain.get("board") else None,
        groups=tuple(_recorded(path, name, cases, plain) for name, cases in samples.items()),
        rejected=rejected,
    )


def _recorded(
    path: Path, group: str, samples_ns: Mapping[str, tuple[int, ...]], plain: Mapping[str, Any]
) -> RecordedGroup:
    sentinels = plain.get("sentinels_ns", {}).get(group, {})
    fingerprint = {str(key): str(value) for key, value in plain["fingerprint"][group].items()}
    kept = plain.get("outputs", {}).get(group)
    model = str(plain["workload"]).rpartition("/")[0]
    engine_id = plain.get("engines", {}).get(group)
    if engine_id is not None:
        engine_id = plain_name(str(engine_id), f"{path}: engine of {group}", BaselineError)
    return RecordedGroup(
        name=plain_name(model, f"{path}: workload's model", BaselineError) if group == "llama" else group,
        fingerprint=fingerprint,
        session=StoredSession(
            recorded_at=str(plain["started_at"]),
            suite_version=str(plain["suite_version"]),
            samples_ns=dict(sorted(samples_ns.items())),
            sentinels_ns={str(name): tuple(int(ns) for ns in times if ns) for name, times in sentinels.items()},
            covariates=dict(plain.get("covariates", {}).get(group, {})),
            engine_id=engine_id,
            engine_version=fingerprint.get(ENGINE),
            outputs=None if kept is None else rebuilt(kept, KeptOutputs),
        ),
    )
