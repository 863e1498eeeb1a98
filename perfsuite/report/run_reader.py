"""Reads a ``run.json`` back into the record that it was written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution, UniformShift
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_json import RUN_NAME, read_plain_run
from perfsuite.records.run_origin import BoardName, Commit, RunOrigin
from perfsuite.report.run_file import RunFile, written_name

_TOTAL = "total"


def run_path(named: Path) -> Path:
    """Return the file of a run that is named by its folder or by the file itself."""
    return named / RUN_NAME if named.is_dir() else named


def read_run_file(named: Path) -> RunFile:
    """Read a run, named by its folder or its ``run.json``.

    Fields that older versions did not write are as in a run that has none of it.

    Raises PerfsuiteError where the file cannot be read, is no ``run.json`` of this schema, lacks a field, or has one
    that holds what it cannot; the message says which.
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
    sentinels = plain.get("sentinels_ns", {})
    shift, commit, board = (plain.get(name) for name in ("uniform_shift", "commit", "board"))
    origin = _fields(RunOrigin, plain) | {
        "arguments": tuple(plain.get("arguments", ())),
        "selection": tuple(plain.get("selection", ())),
        "commit": Commit(**commit) if commit else None,
        "board": BoardName(**board) if board else None,
    }
    told = {
        "ceilings": None if ceilings is None else Ceilings.from_plain(ceilings),
        "durations_s": {name: spent for name, spent in plain["duration_s"].items() if name != _TOTAL},
        "judgements": tuple(_judgement(case) for case in plain["cases"]),
        "sentinels_ns": {
            group: {name: tuple(times) for name, times in each.items()} for group, each in sentinels.items()
        },
        "device_notes": tuple(plain.get("device_notes", ())),
        "attribution": Attribution(
            phases=tuple(map(_attribution, plain.get("attribution", ()))),
            uniform_shift=UniformShift(**shift) if shift else None,
        ),
        "origin": RunOrigin(**origin),
    }
    return RunFile(**_fields(RunFile, plain) | told)


def _fields(record_type: type[Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record is made of; what has a default may be missing, and what no field is for is left out."""
    return {
        each.name: plain[name]
        for each in fields(record_type)
        if (name := written_name(each.name)) in plain or each.default is each.default_factory is MISSING
    }


def _judgement(case: Mapping[str, Any]) -> Judgement:
    samples = {name: tuple(case.get(name, ())) for name in ("samples_ns", "baseline_samples_ns")}
    return Judgement(**_fields(Judgement, case) | samples | {"outcome": Outcome(case["outcome"])})


def _attribution(phase: Mapping[str, Any]) -> PhaseAttribution:
    carriers = tuple(Carrier(**_fields(Carrier, each)) for each in phase["carriers"])
    return PhaseAttribution(**_fields(PhaseAttribution, phase) | {"carriers": carriers})
