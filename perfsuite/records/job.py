"""A folder for a device that only runs what is uploaded: what is asked of it, and what came back.

========================  ============================================================================================
``job.json``              a `Job`: whom it is for, how the run is asked for, and the hash of each request
``requests/0000``...      messages as they travel over a link (MessagePack), in the order in which they are sent
``weights/SHA256.gguf``   files of weights
``bundles/board``         the bundle that runs there; ``bundles/old`` one that takes turns with it
``run.sh``                what is run there
``results/0000``...       an `Answer` each, by the name of its request; ``ended`` is the last word
========================  ============================================================================================

The folder's own place stands as `PLACE` in requests: only the program there knows it.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from perfsuite.errors import DeviceError, MeasurementError
from perfsuite.records.codec import Name, content_of, from_plain, read_json, to_plain, unpack
from perfsuite.records.whole_file import write_json

#: The folder's own place in what it holds.
PLACE = Path("/perfsuite-folder")

MANIFEST_NAME, REQUESTS, RESULTS, WEIGHTS, BUNDLES, SCRIPT = (
    *("job.json", "requests", "results", "weights", "bundles", "run.sh"),
)
#: The bundle that runs there, and the one of an old side.
BOARD, OLD = "board", "old"
ENDED = "ended"

_SCHEMA = 1
_TODO = "write the folder anew with 'perfsuite bundle --plan'"
_LOST = "fetch the folder of the answers again, or run the folder once more"

#: Most bytes of one answer: as much as crosses a link at once, and what is around it.
_MOST_BYTES = (256 << 20) + 4096

Digest = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z", description="64 hex digits")]
#: An option of the suite's own, or which cases: nothing by which a folder from elsewhere could have code loaded, or say
#: where this machine's runs, history and baselines are.
PytestArgument = Annotated[
    str,
    Meta(
        pattern=r"\A(--(?!(perf-)?(baseline(-dir|=record)|farm)|perf-(dir|history|results|plan|ingest)(?![a-z-]))"
        r"(device|model|scenario|prompts|threads|backend|baseline|against(-model|-args)?|perf-[a-z-]+)"
        r"(=[^\x00-\x1f]*)?|-[km][^\x00-\x1f]+)\Z",
        description="an option of the suite's own as --NAME=VALUE that says what is measured, or -kEXPRESSION",
    ),
]
_RequestName = Annotated[str, Meta(pattern=r"\A[0-9]{4,6}\Z", description="the number of a request")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    name: _RequestName
    sha256: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Whom a folder is for, and what is asked."""

    suite_version: Name
    plan_schema: int
    device: Name
    #: How pytest is called for the run, without what says that it is only planned.
    pytest_arguments: tuple[PytestArgument, ...]
    #: Of the bundle that runs there: its target, and its digest.
    target: Name
    bundle_digest: Name
    requests: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a request has come to there."""

    request: str
    device: str
    #: Of the message, which is one as it travels over a link.
    sha256: Digest
    message: bytes


def write_job(folder: Path, job: Job) -> None:
    """Write what a folder is for."""
    write_json(folder / MANIFEST_NAME, {"schema": _SCHEMA, **to_plain(job)}, DeviceError)


def read_job(folder: Path) -> Job:
    """Read what a folder is for; raises DeviceError for what is none."""
    return read_json(folder / MANIFEST_NAME, Job, DeviceError, _TODO, schema=_SCHEMA, is_closed=True)


def read_request(folder: Path, asked: Asked) -> bytes:
    """Read a request; raises DeviceError where it is not the one that was written."""
    path = folder / REQUESTS / asked.name
    content = _content(path)
    if content is None:
        raise DeviceError(f"{path}: is missing; {_TODO}")
    if (seen := sha256(content)) != asked.sha256:
        raise DeviceError(f"{path}: has sha256 {seen[:16]}, {MANIFEST_NAME} says {asked.sha256[:16]}; {_TODO}")
    return content


def read_answer(path: Path, request: str) -> Answer | None:
    """Read the answer to the request with this SHA-256, None where there is none.

    Raises MeasurementError: it was cut or altered, or answers something else.
    """
    content = _content(path)
    if content is None:
        return None
    try:
        plain = unpack(content)
    except ValueError:
        raise MeasurementError(f"{path}: is not an answer, or was cut ({len(content)} bytes); {_LOST}") from None
    answer = from_plain(plain, Answer, str(path), MeasurementError, _LOST, schema=_SCHEMA, is_closed=True)
    if (seen := sha256(answer.message)) != answer.sha256:
        raise MeasurementError(f"{path}: was altered (sha256 {seen[:16]}, it says {answer.sha256[:16]}); {_LOST}")
    if answer.request != request:
        raise MeasurementError(f"{path}: answers another plan ({_printable(answer.request)}); {_LOST}")
    return answer


def refuse_foreign(results: Path, job: Job) -> None:
    """Refuse what no device has written: other names than those of requests, folders, links."""
    known = {*(each.name for each in job.requests), ENDED}
    try:
        there = sorted(results.iterdir())
    except OSError as error:
        raise MeasurementError(f"{results}: cannot be read ({error.strerror}); name what came back") from None
    for path in there:
        if path.name not in known or path.is_symlink() or not path.is_file():
            raise MeasurementError(f"{results}: {_printable(path.name)} is not an answer of this plan; {_LOST}")


def sha256(content: bytes) -> str:
    """Return the hash by which requests and answers know each other."""
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes | None:
    return content_of(path, MeasurementError, _LOST, most_bytes=_MOST_BYTES) if os.path.lexists(path) else None


def _printable(text: str) -> str:
    return re.sub(r"[^ -~]", "?", text)[:60]
