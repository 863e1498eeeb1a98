"""A history's objects on S3: listed, fetched, put and removed, each whole or not at all.

Endpoint, region and credentials are those of the environment (``AWS_ENDPOINT_URL``, ``AWS_REGION``,
``AWS_ACCESS_KEY_ID``, ...), or of the machine where the cloud gives it some; see docs/history.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryBucket

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Store

#: Of one request, and of all its repetitions.
_REQUEST_LIMIT, _LIMIT = timedelta(seconds=30), timedelta(seconds=60)
_MOST_REPETITIONS = 4

#: How an answer of S3 says why, in XML; and how obstore tells its status.
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: ([^:\n]+)")
_MOST_CHARACTERS = 160

_TODO = "see AWS_ENDPOINT_URL, AWS_REGION and the credentials in the environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a listing says of an object: as long as it is the same, so is the object."""

    n_bytes: int
    changed_s: int


class OpenBucket:
    """A bucket's prefix; names of objects are relative to it. Every method raises HistoryError where S3 refuses."""

    def __init__(self, bucket: HistoryBucket) -> None:
        self._bucket = bucket
        self._store = self._open()

    def _open(self) -> S3Store:
        from obstore.store import S3Store  # of the extra 's3', which most do without

        # plain HTTP where the endpoint says so: S3's own is not
        client: ClientConfig = {"allow_http": True, "timeout": _REQUEST_LIMIT, "connect_timeout": _REQUEST_LIMIT}
        retry: RetryConfig = {"max_retries": _MOST_REPETITIONS, "retry_timeout": _LIMIT}
        with self._errors("cannot be opened"):
            return S3Store.from_url(self._bucket.address, client_options=client, retry_config=retry)

    def objects(self) -> dict[str, Stored]:
        """List what there is."""
        with self._errors("cannot be listed"):
            return {
                each["path"]: Stored(n_bytes=each["size"], changed_s=int(each["last_modified"].timestamp()))
                for some in self._store.list()
                for each in some
            }

    def fetch(self, name: str, write: Callable[[Iterator[bytes]], None]) -> bool:
        """Hand an object to what writes it, piece by piece; return whether it was still there."""
        try:
            with self._errors(f"{name} cannot be read"):
                write(bytes(piece) for piece in self._store.get(name).stream())
        except _GoneError:
            return False
        return True

    def put(self, name: str, path: Path) -> None:
        """Store a file; S3 shows an object when it is whole."""
        with self._errors(f"{name} cannot be written"):
            self._store.put(name, path)

    def remove(self, names: Collection[str]) -> None:
        """Remove objects; those that have gone already are no error."""
        with self._errors("objects that are merged cannot be removed"):
            self._store.delete(sorted(names))

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn what obstore raises into one line; an object that is not there is told apart from all else."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            why = _why(error)
            kind = _GoneError if isinstance(error, FileNotFoundError) and why != "NoSuchBucket" else HistoryError
            raise kind(f"{self._bucket}: {what} ({why}); {_TODO}") from error


class _GoneError(HistoryError):
    """An object is not there, or no more."""


def _why(error: Exception) -> str:
    """Say why S3 refused: by its own code, the status, or the last of the reasons that are reported."""
    told = str(error)
    if match := _CODE.search(told) or _STATUS.search(told):
        return match[1]
    return (told.splitlines() or [type(error).__name__])[0].rpartition(" - ")[2][:_MOST_CHARACTERS]
