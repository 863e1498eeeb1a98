"""A sweep over shapes as CSV: a row a size."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields
from pathlib import Path
from typing import TextIO

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.shapes.sweep_record import ShapeSweep, SweepPoint
from perfsuite.records.whole_file import write_whole

#: The columns, which are the keys of the JSON's points.
COLUMNS = tuple(field.name for field in fields(SweepPoint))


def write_sweep_csv(sweep: ShapeSweep, path: Path) -> None:
    """Write all points, what is not known empty; `PerfsuiteError` where the file cannot be written."""

    def fill(out: TextIO) -> None:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(point) for point in sweep.points)

    write_whole(path, fill, PerfsuiteError)
