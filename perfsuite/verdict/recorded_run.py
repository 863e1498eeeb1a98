"""Reads from a ``run.json`` what baselines need of it: a session for each group, and what cannot be a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import BaselineError
from perfsuite.records.case import group_of
from perfsuite.records.fingerprint import ENGINE, Fingerprint
from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile, read_run_file
from perfsuite.records.whole_file import plain_name
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
    run = read_run_file(path, BaselineError)
    rejected = {each.case_id: each.outcome.value for each in run.judgements if not _may_be_reference(each)}
    samples: dict[str, dict[str, tuple[int, ...]]] = {}
    for each in run.judgements:
        if each.case_id not in rejected and each.samples_ns:
            samples.setdefault(group_of(each.kind, run.fingerprints), {})[each.case_id] = each.samples_ns
    return RecordedRun(
        path=path,
        device=plain_name(run.device, f"{path}: device", BaselineError),
        recorded_at=run.started_at,
        is_injected=run.is_injected,
        is_interrupted=run.is_interrupted,
        against=run.against,
        board=run.origin.kept_by,
        groups=tuple(_recorded(path, name, cases, run) for name, cases in samples.items()),
        rejected=rejected,
    )


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


def _may_be_reference(judgement: Judgement) -> bool:
    return judgement.outcome not in REJECTED and 0 not in judgement.samples_ns


def _recorded(path: Path, group: str, samples_ns: Mapping[str, tuple[int, ...]], run: RunFile) -> RecordedGroup:
    fingerprint, engine_id = run.fingerprints.get(group), run.engines.get(group)
    if fingerprint is None:
        raise BaselineError(f"{path}: has cases of {group!r} and no fingerprint of that; run again")
    if engine_id is not None:
        engine_id = plain_name(engine_id, f"{path}: engine of {group}", BaselineError)
    model = run.workload.rpartition("/")[0]
    return RecordedGroup(
        name=plain_name(model, f"{path}: workload's model", BaselineError) if group == "llama" else group,
        fingerprint=fingerprint,
        session=StoredSession(
            recorded_at=run.started_at,
            suite_version=run.suite_version,
            samples_ns=dict(sorted(samples_ns.items())),
            sentinels_ns={name: tuple(filter(None, times)) for name, times in run.sentinels_ns.get(group, {}).items()},
            covariates=dict(run.covariates.get(group, {})),
            engine_id=engine_id,
            engine_version=fingerprint.get(ENGINE),
            outputs=run.outputs.get(group),
        ),
    )
