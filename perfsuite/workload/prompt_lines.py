"""Files of prompts as lines: JSON, lengths, or CSV, as the first of them shows."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError

#: The field that holds a length: a key, a column, and what a bare number is called.
LENGTH_FIELD = "n_tokens"

_NUMBER = re.compile(r"[-+]?[0-9.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptLine:
    """What one line says."""

    #: The file and the line, for messages.
    where: str
    fields: dict[str, Any]


def read_lines(path: Path) -> tuple[PromptLine, ...]:
    """Read a file line by line.

    What the first line begins with shows the format: ``{`` for lines of JSON, a number for a length a line, anything
    else for CSV with a heading, one of whose columns is ``n_tokens``.

    Raises PerfsuiteError: the file cannot be read or is empty, or a line is not of the format; the message names the
    line.
    """
    text = _read(path)
    if text.lstrip().startswith("{"):
        return tuple(_json_lines(path, text))
    if _NUMBER.fullmatch(text.lstrip().split("\n", maxsplit=1)[0].strip()):
        return tuple(_length_lines(path, text))
    if lines := tuple(_csv_lines(path, text)):
        return lines
    raise PerfsuiteError(f"{path}: is empty but for its heading, expected at least one prompt")


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name a file of prompts") from error
    except UnicodeDecodeError as error:
        raise PerfsuiteError(
            f"{path}: is not text (byte {error.start}); expected JSON lines, lengths or CSV"
        ) from error
    if not text.strip():
        raise PerfsuiteError(f"{path}: is empty, expected at least one prompt")
    return text


def _json_lines(path: Path, text: str) -> Iterator[PromptLine]:
    # Not splitlines: it would break a line at the separators that JSON may hold as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise PerfsuiteError(f"{where}: is no JSON ({error})") from error
        if not isinstance(fields, dict):
            raise PerfsuiteError(f"{where}: is {line.strip()[:40]!r}, expected an object with a text or {LENGTH_FIELD}")
        _check_strict(where, fields)
        yield PromptLine(where=where, fields=fields)


def _check_strict(where: str, fields: dict[str, Any]) -> None:
    """Refuse what can be read but not written: NaN and infinities, halves of surrogate pairs, and what is too deep."""
    try:
        json.dumps(fields, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise PerfsuiteError(f"{where}: has {half}, half a surrogate pair; expected text") from error
    except ValueError as error:
        raise PerfsuiteError(f"{where}: has NaN or an infinity, expected numbers that JSON has") from error
    except RecursionError as error:
        raise PerfsuiteError(f"{where}: is nested too deeply ({error})") from error


def _length_lines(path: Path, text: str) -> Iterator[PromptLine]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield PromptLine(where=f"{path}: line {number}", fields={LENGTH_FIELD: line.strip(), "line": number})


def _csv_lines(path: Path, text: str) -> Iterator[PromptLine]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        columns = rows.fieldnames or ()
        if LENGTH_FIELD not in columns:
            raise PerfsuiteError(
                f"{path}: columns are {', '.join(columns):.80}; expected {LENGTH_FIELD} among them, JSON lines, or a "
                "length a line"
            )
        for row in rows:
            fields = {name: value for name, value in row.items() if name is not None}
            yield PromptLine(where=f"{path}: line {rows.line_num}", fields=fields)
    except csv.Error as error:
        raise PerfsuiteError(f"{path}: line {rows.line_num + 1}: is no CSV ({error})") from error
