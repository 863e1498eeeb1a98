"""Where a history's files lie, in a folder or below a prefix of a bucket on S3: listed, written whole, and removed.

No file changes under its name. So an object is fetched once, into the user's cache, and read there. Endpoint, region
and credentials of S3 are those of the environment (``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ...),
or of the machine where the cloud gives it some; see docs/history.md.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.own_files import user_cache
from perfsuite.records.whole_file import whole_path, write_whole_chunks
from perfsuite.report.history.database import history_work

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Store

#: Of one request, and of all its repetitions.
_REQUEST_LIMIT, _LIMIT = timedelta(seconds=30), timedelta(seconds=60)
_MOST_REPETITIONS = 4
#: How many objects are fetched at the same time: each takes about as long as the way there and back.
_N_AT_ONCE = 8
#: No part of a file's name is longer on Linux.
_MOST_NAME_BYTES = 255

#: How an answer of S3 says why, in XML; and how obstore tells its status.
_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: ([^:\n]+)")
_MOST_CHARACTERS = 160

_TODO = "see AWS_ENDPOINT_URL, AWS_REGION and the credentials in the environment"


class HistoryStore:
    """Keeps a history's files in a folder; one that is not there is empty.

    Every method raises HistoryError where the disk or S3 refuses.
    """

    def __init__(self, root: Path) -> None:
        #: The folder in which the files are read.
        self.root = root

    def paths(self) -> Sequence[Path]:
        """List every file in the folder and below; hidden ones are unfinished, and no part of it.

        While files are merged, a listing may be older than the merged file and younger than what was removed. So it is
        done twice, and both count: whoever reads what has gone asks again.
        """
        return sorted({*self._listed(), *self._listed()})

    def _listed(self) -> Iterable[Path]:
        for folder, below, names in os.walk(self.root, onerror=_refuse):
            below[:] = [name for name in below if not name.startswith(".")]
            yield from (Path(folder, name) for name in names if _is_shown(name))

    def write(self, name: str, fill: Callable[[Path], object]) -> Path | str:
        """Write a file whole or not at all; return its path or address."""
        with whole_path(self.root / name, HistoryError) as path:
            fill(path)
        return self.root / name

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files; those that have gone already are no error."""
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise HistoryError(f"{path}: cannot be removed ({error.strerror}) now that it is merged") from error


def store_of(place: HistoryPlace) -> HistoryStore:
    """Return what keeps the files of a history."""
    return HistoryStore(place) if isinstance(place, Path) else BucketStore(place)


def _refuse(error: OSError) -> None:
    """Pass over a folder that is not there, or is no more; of others that cannot be listed, part would be missing."""
    if isinstance(error, FileNotFoundError):
        return
    if isinstance(error, NotADirectoryError):
        raise HistoryError(f"--history={error.filename}: is a file, expected the folder of a history") from error
    raise HistoryError(f"{error.filename}: cannot be listed ({error.strerror})") from error


def _is_shown(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(".")


class BucketStore(HistoryStore):
    """Keeps a history in a bucket; who may only put objects can add runs."""

    def __init__(self, address: str) -> None:
        from obstore.store import S3Store  # of the extra 's3', which most do without

        self._address = address
        super().__init__(user_cache() / "histories" / hashlib.sha256(address.encode()).hexdigest()[:16])
        # plain HTTP where the endpoint says so: S3's own is not
        client: ClientConfig = {"allow_http": True, "timeout": _REQUEST_LIMIT, "connect_timeout": _REQUEST_LIMIT}
        retry: RetryConfig = {"max_retries": _MOST_REPETITIONS, "retry_timeout": _LIMIT}
        with self._errors("cannot be opened"):
            self._store: S3Store = S3Store.from_url(address, client_options=client, retry_config=retry)

    def paths(self) -> Sequence[Path]:
        """List the objects, and fetch those that are not in the cache; what has gone from the bucket goes from it."""
        listed = super().paths()
        with ThreadPoolExecutor(_N_AT_ONCE, thread_name_prefix="perfsuite-history") as pool:
            list(pool.map(self._fetch, (path for path in listed if not path.exists())))
        for path in {*self.root.rglob("*.parquet")}.difference(listed):
            with suppress(OSError):
                path.unlink()
        return listed

    def _listed(self) -> Iterable[Path]:
        with self._errors("cannot be listed"):
            names = [each["path"] for some in self._store.list() for each in some]
        return [self.root / name for name in names if is_file_name(name)]

    def _fetch(self, path: Path) -> None:
        name = self._name(path)
        try:
            with self._errors(f"{name} cannot be read"):
                pieces = (bytes(piece) for piece in self._store.get(name).stream())
                write_whole_chunks(path, pieces, HistoryError)
        except HistoryError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise  # what has gone since it was listed is asked for again

    def write(self, name: str, fill: Callable[[Path], object]) -> str:
        """Put an object; S3 shows it when it is whole."""
        with history_work() as work:
            fill(work / "rows.parquet")
            with self._errors(f"{name} cannot be written"):
                self._store.put(name, work / "rows.parquet")
        return f"{self._address}/{name}"

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove objects."""
        with self._errors("objects that are merged cannot be removed"):
            self._store.delete([self._name(path) for path in paths])

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn what obstore raises into one line."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            raise HistoryError(f"{self._address}: {what} ({_why(error)}); {_TODO}") from error


def is_file_name(name: str) -> bool:
    """Say whether an object has the name of a file that a folder would show; whatever a server lists, it lies below."""
    parts = name.split("/")
    fits = all(part and not part.startswith(".") and len(part.encode()) <= _MOST_NAME_BYTES for part in parts)
    return _is_shown(parts[-1]) and fits and name.isprintable()


def _why(error: Exception) -> str:
    """Say why S3 refused: by its own code, the status, or the last of the reasons that are reported."""
    told = str(error)
    if match := _CODE.search(told) or _STATUS.search(told):
        return match[1]
    return (told.splitlines() or [type(error).__name__])[0].rpartition(" - ")[2][:_MOST_CHARACTERS]
