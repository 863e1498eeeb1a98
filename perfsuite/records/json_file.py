"""JSON files that are written whole or not at all."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from perfsuite.errors import PerfsuiteError
from perfsuite.records.whole_file import write_whole

#: A list of numbers as `json` indents it. Within a string a line break is escaped, so none is taken for a list.
_NUMBERS = re.compile(r"\[\n[-+.,\d\seE]+\]")


def write_json(path: Path, plain: Mapping[str, Any], error_type: type[PerfsuiteError]) -> None:
    """Write indented JSON that ends with a newline, a list of numbers on one line.

    Raises
    ------
    PerfsuiteError
        Of `error_type`, naming the path and why it cannot be written; what was there before stays.
    """

    def fill(out: TextIO) -> None:
        text = io.StringIO()
        json.dump(plain, text, indent=1, ensure_ascii=False, allow_nan=False)
        out.write(_NUMBERS.sub(_on_one_line, text.getvalue()) + "\n")

    write_whole(path, fill, error_type)


def _on_one_line(numbers: re.Match[str]) -> str:
    return " ".join(numbers[0].split()).replace("[ ", "[").replace(" ]", "]")
