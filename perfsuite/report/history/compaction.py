"""Merges the files of a history into one, so that whoever reads at any moment finds every run.

The merged file is whole and on the disk before any file that it replaces goes. In between, and after a merge that was
broken off, rows are there twice, and readers take each case of a run once. Nothing is lost whoever merges at the same
time: files are removed only by whose own merged file holds their rows.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from perfsuite.records.history_place import HistoryPlace
from perfsuite.report.history.append import LOOSE
from perfsuite.report.history.database import copy_statement, database_errors
from perfsuite.report.history.files import SkippedFile
from perfsuite.report.history.reader import HistoryReader
from perfsuite.report.history.store import store_of

COMPACTED = "compacted"

#: How many runs there are, whether no file holds what another holds, too, and every value, so that a damaged one shows.
_CHECK = """
SELECT count(DISTINCT run_id), count(*) = (SELECT count(*) FROM (SELECT DISTINCT case_id, run_id FROM stored)),
  sum(hash(COLUMNS(*)))
FROM stored
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a merge did."""

    #: The merged file, or the address of the merged object; None where there was nothing to merge.
    path: Path | str | None
    n_files: int
    n_runs: int
    skipped: tuple[SkippedFile, ...] = ()


def compact(place: HistoryPlace) -> Compaction:
    """Merge all files of a history, but not those of folders below it, into one that is sorted by case and time.

    A damaged file is left where it is. Raises HistoryError where a file cannot be written or removed.
    """
    store = store_of(place)
    history = HistoryReader(store, folders=[store.root / name for name in (LOOSE, COMPACTED)])
    ((n_runs, is_once, *_),) = history.rows(_CHECK)
    table = "stored" if is_once else "history"  # to find the doubled rows takes as long again
    if len(history.paths) < 2 and all(path.parent.name != LOOSE for path in history.paths):
        return Compaction(path=None, n_files=len(history.paths), n_runs=0, skipped=history.skipped)

    def fill(path: Path) -> None:
        with database_errors(f"{place}: cannot be merged, nothing was changed"), ExitStack() as stack:
            history.ask(stack, copy_statement(table, path), writes=path)

    made = store.write(f"{COMPACTED}/{uuid.uuid4().hex}.parquet", fill)
    store.remove(history.paths)
    return Compaction(path=made, n_files=len(history.paths), n_runs=n_runs, skipped=history.skipped)
