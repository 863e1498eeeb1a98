"""Stored baselines: ``<directory>/<device>/<model>.json``, entries by fingerprint, sessions of raw samples."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfsuite.device.fingerprint import Fingerprint, differences
from perfsuite.errors import BaselineError
from perfsuite.records.json_file import write_json
from perfsuite.verdict.entry import BaselineEntry, StoredSession, first_entry
from perfsuite.verdict.entry_file import entry_from_plain, entry_from_plain_1, plain_entry

#: Raised whenever the file's fields change their meaning.
SCHEMA = 2

#: How the entries of each schema that is still read are written.
_READERS = {1: entry_from_plain_1, SCHEMA: entry_from_plain}

_RE_RECORD = "re-record with --baseline=record"

#: Which group of measurements, and so which file, a kind of case belongs to.
GROUP_OF_KIND = {
    "phase": "llama",
    "operator": "llama",
    "engine_kernel": "llama",
    "kernel": "kernels",
    "roofline": "roofline",
    "fidelity": "fidelity",
    "overhead": "overhead",
    "trace": "trace",
    "shape-hunt": "shapes",
    "shape-kept": "shapes",
}

#: The cases that tests of one's own measure; also the name of their file.
OWN_GROUP = "own"


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

    def with_session(self, fingerprint: Fingerprint, session: StoredSession) -> BaselineFile:
        """Return the file with a session more in the entry of its fingerprint, which is made where there is none."""
        old = self.find(fingerprint)
        return self.with_entry(old.with_session(session) if old else first_entry(fingerprint, session))

    def with_entry(self, new: BaselineEntry) -> BaselineFile:
        """Return the file with `new` in place of the entry of its fingerprint."""
        old = self.find(new.fingerprint)
        entries = tuple(new if each is old else each for each in self.entries)
        return BaselineFile(path=self.path, entries=entries if old else (*entries, new))


def baseline_path(directory: Path, device: str, name: str) -> Path:
    """Return where the baselines of a model, or of ``kernels``, lie for a device."""
    return directory / device / f"{name}.json"


def read_baselines(path: Path) -> BaselineFile:
    """Read a file of baselines of this schema or an earlier one; one that does not exist has no entries.

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
    return BaselineFile(path=path, entries=_entries(path, plain))


def write_baselines(baselines: BaselineFile) -> None:
    """Write the file whole or not at all."""
    plain = {"schema": SCHEMA, "entries": [plain_entry(entry) for entry in baselines.entries]}
    write_json(baselines.path, plain, BaselineError)


def _entries(path: Path, plain: Any) -> tuple[BaselineEntry, ...]:
    schema = plain.get("schema") if isinstance(plain, dict) else type(plain).__name__
    if schema not in _READERS:
        raise BaselineError(
            f"{path}: schema is {schema!r}, this suite reads {SCHEMA}; move the file away and {_RE_RECORD}"
        )
    try:
        return tuple(_READERS[schema](entry) for entry in plain["entries"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BaselineError(
            f"{path}: an entry cannot be read ({type(error).__name__}: {error}); "
            f"restore it from version control, or move it away and {_RE_RECORD}"
        ) from error
