"""Reads a ``run.json`` back into the record that it was written from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_json import RUN_NAME, read_plain_run
from perfsuite.records.run_origin import BoardName, Commit, RunOrigin
from perfsuite.report.run_file import RunFile

_TOTAL = "total"


def run_path(named: Path) -> Path:
    """Return the file of a run that is named by its folder or by the file itself."""
    return named / RUN_NAME if named.is_dir() else named


def read_run_file(named: Path) -> RunFile:
    """Read a run, named by its folder or its ``run.json``.

    Fields that older versions did not write are as in a run that has none of it.

    Raises
    ------
    PerfsuiteError
        The file cannot be read, is no ``run.json`` of this schema, lacks a field, or has one that holds what it cannot;
        the message says which.
    """
    path = run_path(named)
    plain = read_plain_run(path)
    try:
        return _run(plain)
    except KeyError as error:
        raise PerfsuiteError(f"{path}: lacks the field {error}; run again") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, PerfsuiteError) as error:
        raise PerfsuiteError(f"{path}: cannot be used ({type(error).__name__}: {error}); run again") from error


def _run(plain: Mapping[str, Any]) -> RunFile:
    ceilings = plain["ceilings"]
    return RunFile(
        suite_version=str(plain["suite_version"]),
        started_at=str(plain["started_at"]),
        device=str(plain["device"]),
        workload=str(plain["workload"]),
        subjects=dict(plain["subject"]),
        fingerprints={name: dict(fields) for name, fields in plain["fingerprint"].items()},
        ceilings=None if ceilings is None else Ceilings.from_plain(ceilings),
        durations_s={name: spent for name, spent in plain["duration_s"].items() if name != _TOTAL},
        operator_share_ratio=dict(plain["operator_share_ratio"]),
        n_discarded_replicates=dict(plain["n_discarded_replicates"]),
        peak_rss_bytes=plain["peak_rss_bytes"],
        judgements=tuple(_judgement(case) for case in plain["cases"]),
        sentinels_ns={
            group: {name: tuple(times) for name, times in sentinels.items()}
            for group, sentinels in plain.get("sentinels_ns", {}).items()
        },
        covariates={name: dict(fields) for name, fields in plain.get("covariates", {}).items()},
        joules_per_token=dict(plain.get("joules_per_token", {})),
        device_notes=tuple(plain.get("device_notes", ())),
        is_injected=bool(plain.get("injected", False)),
        is_interrupted=bool(plain.get("interrupted", False)),
        against=plain.get("against"),
        engines={str(group): str(engine) for group, engine in plain.get("engines", {}).items()},
        attribution=Attribution(
            phases=tuple(_attribution(each) for each in plain.get("attribution", ())),
            uniform_shift=UniformShift(**shift) if (shift := plain.get("uniform_shift")) else None,
        ),
        origin=_origin(plain),
    )


def _origin(plain: Mapping[str, Any]) -> RunOrigin:
    return RunOrigin(
        run_id=str(plain.get("run_id", "")),
        arguments=tuple(str(each) for each in plain.get("arguments", ())),
        selection=tuple(str(each) for each in plain.get("selection", ())),
        environment={str(name): str(value) for name, value in plain.get("environment", {}).items()},
        commit=Commit(**commit) if (commit := plain.get("commit")) else None,
        board=BoardName(**board) if (board := plain.get("board")) else None,
    )


def _judgement(case: Mapping[str, Any]) -> Judgement:
    return Judgement(
        case_id=str(case["id"]),
        kind=str(case["kind"]),
        samples_ns=tuple(case["samples_ns"]),
        measured_ns=case["measured_ns"],
        floor_ns=case["floor_ns"],
        expected_ns=case["expected_ns"],
        limit_ns=case["limit_ns"],
        baseline_ns=case["baseline_ns"],
        change_ratio=case["change_ratio"],
        outcome=Outcome(case["outcome"]),
        reason=str(case["reason"]),
        lower_ns=case.get("expected_lower_ns"),
        upper_ns=case.get("expected_upper_ns"),
        baseline_samples_ns=tuple(case.get("baseline_samples_ns", ())),
        lower_ratio=case.get("lower_ratio"),
        upper_ratio=case.get("upper_ratio"),
        margin_ratio=case.get("margin_ratio"),
        resolution_ratio=case.get("resolution_ratio"),
        step_share_ratio=case.get("step_share_ratio"),
        n_pairs=case.get("n_pairs"),
        n_more_pairs=case.get("n_more_pairs"),
        smallest_effect_ratio=case.get("smallest_effect_ratio"),
    )


def _attribution(phase: Mapping[str, Any]) -> PhaseAttribution:
    return PhaseAttribution(
        case_id=str(phase["id"]),
        lost_ns=phase["lost_ns"],
        carriers=tuple(
            Carrier(
                case_id=str(each["id"]),
                role=str(each["role"]),
                lost_ns=each["lost_ns"],
                share_ratio=each["share_ratio"],
                is_significant=each["is_significant"],
            )
            for each in phase["carriers"]
        ),
        unexplained_ns=phase["unexplained_ns"],
    )
