"""Stored baselines: ``<directory>/<device>/<model>.json``, entries by fingerprint, raw samples by case id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfsuite.device.fingerprint import Fingerprint, differences
from perfsuite.errors import BaselineError
from perfsuite.records.json_file import write_json

#: Raised whenever the file's fields change their meaning.
SCHEMA = 1

_RE_RECORD = "re-record with --baseline=record"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineEntry:
    """What was measured under one fingerprint."""

    fingerprint: Fingerprint
    recorded_at: str
    suite_version: str
    #: Samples of each case, ns, one a replicate.
    samples_ns: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFile:
    """All entries of one device and model."""

    path: Path
    entries: tuple[BaselineEntry, ...] = field(default=())

    def find(self, fingerprint: Fingerprint) -> BaselineEntry | None:
        """Return the entry with exactly this fingerprint."""
        return next((entry for entry in self.entries if dict(entry.fingerprint) == dict(fingerprint)), None)

    def nearest_differences(self, fingerprint: Fingerprint) -> tuple[str, ...]:
        """Name the fields in which the most similar entry differs; empty when there is no entry."""
        candidates = [differences(entry.fingerprint, fingerprint) for entry in self.entries]
        return min(candidates, key=len, default=())

    def with_entry(self, new: BaselineEntry) -> BaselineFile:
        """Return the file with `new` in place of the entry of its fingerprint; cases that it lacks are kept."""
        old = self.find(new.fingerprint)
        merged = {**(old.samples_ns if old else {}), **new.samples_ns}
        entry = BaselineEntry(
            fingerprint=new.fingerprint,
            recorded_at=new.recorded_at,
            suite_version=new.suite_version,
            samples_ns=dict(sorted(merged.items())),
        )
        others = tuple(each for each in self.entries if each is not old)
        return BaselineFile(path=self.path, entries=(*others, entry))


def baseline_path(directory: Path, device: str, name: str) -> Path:
    """Return where the baselines of a model, or of ``kernels``, lie for a device."""
    return directory / device / f"{name}.json"


def read_baselines(path: Path) -> BaselineFile:
    """Read a file of baselines; one that does not exist has no entries.

    Raises
    ------
    BaselineError
        The file is not JSON, has another schema, or lacks a field.
    """
    try:
        plain = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return BaselineFile(path=path)
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise BaselineError(
            f"{path}: is not JSON ({error}); restore it from version control, or {_RE_RECORD}"
        ) from error
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        seen = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
        raise BaselineError(
            f"{path}: schema is {seen!r}, this suite reads {SCHEMA}; move the file away and {_RE_RECORD}"
        )
    try:
        return BaselineFile(path=path, entries=tuple(_entry(entry) for entry in plain["entries"]))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BaselineError(
            f"{path}: an entry cannot be read ({type(error).__name__}: {error}); "
            f"restore it from version control, or move it away and {_RE_RECORD}"
        ) from error


def write_baselines(baselines: BaselineFile) -> None:
    """Write the file whole or not at all."""
    plain = {"schema": SCHEMA, "entries": [_plain(entry) for entry in baselines.entries]}
    write_json(baselines.path, plain, BaselineError)


def _entry(plain: Mapping[str, Any]) -> BaselineEntry:
    samples = {str(case_id): tuple(int(sample) for sample in values) for case_id, values in plain["cases"].items()}
    if any(sample <= 0 for values in samples.values() for sample in values):
        raise ValueError("a sample is not positive")
    return BaselineEntry(
        fingerprint={str(key): str(value) for key, value in plain["fingerprint"].items()},
        recorded_at=str(plain["recorded_at"]),
        suite_version=str(plain["suite_version"]),
        samples_ns=samples,
    )


def _plain(entry: BaselineEntry) -> dict[str, Any]:
    return {
        "fingerprint": dict(entry.fingerprint),
        "recorded_at": entry.recorded_at,
        "suite_version": entry.suite_version,
        "cases": {case_id: list(samples) for case_id, samples in entry.samples_ns.items()},
    }
