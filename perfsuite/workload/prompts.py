"""Prompts of a data set: their lengths in tokens, and what else a file says of them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from statistics import median_low
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.scenario import Scenario

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
    raise PerfsuiteError(f"{path}: has only a heading, expected at least one prompt")


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
            raise PerfsuiteError(f"{where}: is not JSON ({error})") from error
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
        raise PerfsuiteError(f"{path}: line {rows.line_num + 1}: is not CSV ({error})") from error


#: Fields of a line of JSON that hold the text, the first that is there counts.
TEXT_FIELDS = ("prompt", "text", "question")
#: The field that holds the tokens themselves.
TOKENS_FIELD = "tokens"
#: Tokens of a word where nobody counts them. *Source*: OpenAI's rule of thumb that 100 tokens are about 75 words.
TOKENS_PER_WORD_RATIO = 4 / 3

#: No prompt is longer.
_MOST_TOKENS = 1 << 24
_DIGITS = re.compile(r"[0-9]{1,9}")

#: Counts the tokens of texts.
CountTokens = Callable[[Sequence[str]], Sequence[int]]


class LengthSource(Enum):
    """Where the length of a prompt comes from."""

    #: The file has it, as a number or as the tokens.
    GIVEN = "given"
    #: A tokenizer has counted.
    COUNTED = "counted"
    #: From the number of words: an estimate.
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt."""

    n_tokens: int
    length_source: LengthSource
    #: The ids of its tokens; None where the file has none.
    tokens: tuple[int, ...] | None
    #: The fields of its line; of a file of lengths, the length and the number of the line.
    fields: Mapping[str, Any]


def read_prompts(path: Path, count_tokens: CountTokens | None = None) -> tuple[Prompt, ...]:
    """Read a file of prompts, or of their lengths.

    `read_lines` has the formats. The length of a line of JSON is the number of its ``tokens``; else that of its text by
    `count_tokens`, where that is given; else its ``n_tokens``; else an estimate: the words of its text, apart by white
    space, times `TOKENS_PER_WORD_RATIO`.

    Raises PerfsuiteError: the file cannot be read or is empty, or a line has neither a length nor a text; the message
    names the line.
    """
    lines = read_lines(path)
    counts = _counts(lines, count_tokens)
    return tuple(_prompt(line, count) for line, count in zip(lines, counts, strict=True))


def prompt_lengths(path: Path) -> tuple[int, ...]:
    """Return the length of each prompt of a file in tokens, estimated where the file has texts alone.

    Raises as `read_prompts` does.
    """
    return tuple(prompt.n_tokens for prompt in read_prompts(path))


def prompts_scenario(lengths: Sequence[int], n_gen: int, *, n_depth: int = 0) -> Scenario:
    """Return what stands for a run of many prompts: the prompt of the median length, under a name of these lengths.

    For an even number it is the shorter of the two in the middle, which is one of the prompts.
    """
    digest = hashlib.sha256(repr(tuple(lengths)).encode()).hexdigest()[:8]
    depth = f"-d{n_depth}" if n_depth else ""
    return Scenario(
        name=f"prompts-{len(lengths)}-{digest}-g{n_gen}{depth}",
        n_prompt=median_low(lengths),
        n_gen=n_gen,
        n_depth=n_depth,
        source=f"the median of {len(lengths)} prompts",
    )


def prompts_text(prompts: Sequence[Prompt]) -> str:
    """Return prompts as lines of JSON; a length that was counted is among them, one that was estimated is not."""
    return "".join(f"{json.dumps(_told(prompt), ensure_ascii=False)}\n" for prompt in prompts)


def _told(prompt: Prompt) -> dict[str, Any]:
    counted = {LENGTH_FIELD: prompt.n_tokens} if prompt.length_source is LengthSource.COUNTED else {}
    return {**prompt.fields, **counted}


def _counts(lines: Sequence[PromptLine], count_tokens: CountTokens | None) -> Sequence[int | None]:
    """Count the texts of all lines at once; None for each line that has its length itself."""
    if count_tokens is None:
        return [None] * len(lines)
    texts = {at: text for at, line in enumerate(lines) if (text := _text(line)) is not None}
    counted = dict(zip(texts, count_tokens(tuple(texts.values())), strict=True))
    return [counted.get(at) for at in range(len(lines))]


def _text(line: PromptLine) -> str | None:
    """Return the text of a line that has no tokens; None where it has none."""
    found = [line.fields[name] for name in TEXT_FIELDS if name in line.fields]
    if not found or line.fields.get(TOKENS_FIELD) is not None:
        return None
    if not isinstance(found[0], str) or not found[0].strip():
        raise PerfsuiteError(f"{line.where}: the text is {found[0]!r:.40}, expected a string that is not empty")
    return found[0]


def _prompt(line: PromptLine, counted: int | None) -> Prompt:
    tokens = _tokens(line)
    n_tokens, source = _sized(line, tokens, counted)
    given = {LENGTH_FIELD: n_tokens} if LENGTH_FIELD in line.fields else {}
    return Prompt(n_tokens=n_tokens, length_source=source, tokens=tokens, fields={**line.fields, **given})


def _sized(line: PromptLine, tokens: tuple[int, ...] | None, counted: int | None) -> tuple[int, LengthSource]:
    if tokens is not None:
        return len(tokens), LengthSource.GIVEN
    if counted is not None:
        return _length(line, counted), LengthSource.COUNTED
    if LENGTH_FIELD in line.fields:
        return _length(line, line.fields[LENGTH_FIELD]), LengthSource.GIVEN
    text = _text(line)
    if text is None:
        seen = ", ".join(map(str, line.fields)) or "none"
        accepted = ", ".join((*TEXT_FIELDS, LENGTH_FIELD, TOKENS_FIELD))
        raise PerfsuiteError(f"{line.where}: fields are {seen}; expected one of {accepted}")
    return math.ceil(len(text.split()) * TOKENS_PER_WORD_RATIO), LengthSource.ESTIMATED


def _tokens(line: PromptLine) -> tuple[int, ...] | None:
    plain = line.fields.get(TOKENS_FIELD)
    if plain is None:
        return None
    if not isinstance(plain, list) or not plain or not all(type(each) is int and each >= 0 for each in plain):
        raise PerfsuiteError(
            f"{line.where}: {TOKENS_FIELD} is {str(plain)[:40]!r}, expected a list of ids of 0 or more"
        )
    return tuple(plain)


def _length(line: PromptLine, plain: object) -> int:
    """Return a length: a whole number, in a file of text as its digits."""
    if isinstance(plain, str) and _DIGITS.fullmatch(plain.strip()):
        plain = int(plain)
    if isinstance(plain, int) and not isinstance(plain, bool) and 1 <= plain <= _MOST_TOKENS:
        return plain
    raise PerfsuiteError(
        f"{line.where}: {LENGTH_FIELD} is {plain!r:.40}, expected a whole number of 1 to {_MOST_TOKENS}"
    )
