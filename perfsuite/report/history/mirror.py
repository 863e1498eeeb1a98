"""A copy of a bucket's history in the user's cache, which DuckDB reads as it reads any folder.

Objects never change under their name, so that each is fetched once. The copy is renewed as a history is merged: what is
new comes before what has gone goes, and whoever reads the folder meanwhile is right (`folder.py`). A listing may be of
several pages, between which a merge puts its object and removes others; so it is done again where a merged object came
meanwhile, or one that was listed has gone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath

from perfsuite.errors import HistoryError
from perfsuite.records.history_place import HistoryBucket, HistoryPlace
from perfsuite.records.own_files import user_cache
from perfsuite.records.whole_file import write_whole_chunks
from perfsuite.report.history.bucket import OpenBucket, Stored
from perfsuite.report.history.folder import COMPACTED
from perfsuite.report.history.folder_lock import held_folder

#: So often a bucket is listed in which merges end meanwhile.
_MOST_LISTINGS = 8
#: How many objects are fetched at the same time: each takes about as long as the way there and back.
_N_AT_ONCE = 8
#: How long one process waits for another to be done with the same copy.
_LOCK_LIMIT_S = 600.0
#: No part of a file's name is longer on Linux.
_MOST_NAME_BYTES = 255


def readable_folder(place: HistoryPlace) -> Path:
    """Return the folder in which a history can be read: itself, or the copy of a bucket, renewed.

    Raises HistoryError where S3 or the disk refuses, or the bucket is merged again and again meanwhile.
    """
    if isinstance(place, Path):
        return place
    folder = mirror_folder(place)
    with held_folder(folder, _LOCK_LIMIT_S) as is_ours:
        if not is_ours:
            raise HistoryError(f"{folder}: another process renews this copy of {place} for too long; try later")
        _renew(OpenBucket(place), folder, str(place))
    return folder


def mirror_folder(bucket: HistoryBucket) -> Path:
    """Return where a bucket's copy lies."""
    digest = hashlib.sha256(bucket.address.encode()).hexdigest()[:16]
    return user_cache() / "histories" / digest


def _renew(bucket: OpenBucket, folder: Path, told: str) -> None:
    for _ in range(_MOST_LISTINGS):
        listed = _histories(bucket.objects())
        is_whole = _bring(
            bucket, folder, {name: each for name, each in listed.items() if not _is_held(folder, name, each)}
        )
        if is_whole and all(name in listed for name in _histories(bucket.objects()) if _is_merged(name)):
            _remove_others(folder, listed)
            return
    raise HistoryError(f"{told}: objects are merged again and again while they are read; try later")


def _histories(objects: Mapping[str, Stored]) -> dict[str, Stored]:
    """Return the objects that a folder would show; names that could be no file's are not among them."""
    return {name: each for name, each in objects.items() if _is_shown(name)}


def _is_shown(name: str) -> bool:
    parts = name.split("/")
    fits = all(part and not part.startswith(".") and len(part.encode()) <= _MOST_NAME_BYTES for part in parts)
    return name.endswith(".parquet") and fits and name.isprintable()


def _is_merged(name: str) -> bool:
    return PurePosixPath(name).parent.name == COMPACTED


def _is_held(folder: Path, name: str, stored: Stored) -> bool:
    try:
        held = (folder / name).stat()
    except OSError:
        return False
    return (held.st_size, int(held.st_mtime)) == (stored.n_bytes, stored.changed_s)


def _bring(bucket: OpenBucket, folder: Path, wanted: Mapping[str, Stored]) -> bool:
    """Fetch objects; return whether all were still there."""
    with ThreadPoolExecutor(_N_AT_ONCE, thread_name_prefix="perfsuite-history") as pool:
        came = pool.map(partial(_bring_one, bucket, folder), *zip(*wanted.items(), strict=True)) if wanted else ()
        return all(list(came))


def _bring_one(bucket: OpenBucket, folder: Path, name: str, stored: Stored) -> bool:
    path = folder / name
    if not bucket.fetch(name, lambda pieces: write_whole_chunks(path, pieces, HistoryError)):
        return False
    with suppress(FileNotFoundError):
        os.utime(path, (stored.changed_s, stored.changed_s))
    return True


def _remove_others(folder: Path, listed: Collection[str]) -> None:
    for path in folder.rglob("*.parquet"):
        if path.relative_to(folder).as_posix() not in listed and path.is_file():
            path.unlink(missing_ok=True)
