"""Changes the content of a file at random: as bytes, as text, and as the tree of values that it holds."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any

from perfsuite.records.codec import pack, unpack


class Form(Enum):
    """What a file is made of, and so how it is changed."""

    JSON = "json"
    JSON_LINES = "jsonl"
    #: TOML, SQL, CSV and lines.
    TEXT = "text"
    MESSAGE_PACK = "msgpack"
    BINARY = "binary"


#: No changed file is longer, but for one of many brackets.
MOST_BYTES = 1 << 17

#: What is written into trees and texts as it stands: numbers and texts that no writer makes.
_ODD_TEXTS = (
    *("0", "-1", "1.5", "-0.0", "1e308", "1e999", "-1e999", "1e-400", "NaN", "Infinity", "-Infinity", "nan", "inf"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "4294967295"),
    *("1" + "0" * 400, "9" * 5000, "true", "false", "null", "[]", "{}", '""', "''", '"\\ud800"', '"\\u0000"', "[[]]"),
    *('"\\u001b[31m"', '"../../x"', '"/x"', '"\u2028"', '"\\udfff\\ud800"', '"a\\nb"', '{"a": {}}', "[null]", '"²"'),
    *('"٣"', '"' + "x" * 3000 + '"', "1_000", "0x10", "2026-02-30T25:00:00Z", "0001-01-01", "1e5", '"%s"', '"NaN"'),
)
_DEPTHS = (3, 60, 900, 20_000, 100_000)
_BRACKETS = (("[", "]"), ('{"a":', "}"), ("(", ")"), ("{", "}"), ("[[", "]]"))
_MARKS = (*"[]{}():,;\"'`\n\r\t\0 =#.-+*/\\", "--", "/*", "*/", "\r\n", "\ufeff", "\u2028", "'''", '"""', "[[", "]]")
_ODD_NUMBERS = (0, 1, 2, 127, 128, 255, 256, 32767, 65535, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32)
_ODD_LONG = (*_ODD_NUMBERS, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8, 10**6, 1 << 40)
_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, float("nan"), float("inf"), -float("inf"), 1e308, "", b"", b"\0\xff", [], {}),
    *((1 << 63) - 1, 1 << 63, (1 << 64) - 1, -(1 << 63), "\0", "x" * 3000, [[]], {"a": 1}, [None], {1: 2}, "\x1b[31m"),
)
_TOKEN = re.compile(rb'-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|\b[A-Za-z_][\w.-]*')
_RAW = re.compile('"\ue000(\\d+)\ue000"')


class Mutator:
    """Draws changed contents of one form; equal seeds draw equal ones."""

    def __init__(self, form: Form, seed: int) -> None:
        self._form = form
        self._draw = random.Random(seed)

    def one_of(self, choices: Sequence[Any]) -> Any:
        """Draw one of several."""
        return choices[int(self._draw.random() * len(choices))]

    def changed(self, content: bytes, other: bytes) -> bytes:
        """Return a content with some changes; `other` is of the same form, and gives pieces."""
        changes = _CHANGES[self._form]
        for _ in range(self.one_of((1, 1, 1, 2, 2, 3, 6))):
            with suppress(RecursionError):  # a tree that is too deep stays as it is
                content = self.one_of(changes)(self, content, other)
            if len(content) > MOST_BYTES:
                break
        return content

    # as bytes

    def _flip(self, content: bytes, _: bytes) -> bytes:
        at = self._place(content)
        return content[:at] + bytes((content[at] ^ (1 << self._below(8)),)) + content[at + 1 :] if content else b"\0"

    def _number(self, content: bytes, _: bytes) -> bytes:
        n_bytes = self.one_of((1, 2, 4, 8))
        at = self._place(content) // n_bytes * n_bytes if self._below(2) else self._place(content)
        told = (self.one_of(_ODD_LONG) % (1 << 8 * n_bytes)).to_bytes(n_bytes, "little")
        return content[:at] + told + content[at + n_bytes :]

    def _step(self, content: bytes, _: bytes) -> bytes:
        """Change a number by a little, as a length that is one too long."""
        n_bytes, at = self.one_of((1, 2, 4, 8)), self._place(content)
        old = int.from_bytes(content[at : at + n_bytes], "little")
        told = ((old + self.one_of((-8, -1, 1, 8, 16))) % (1 << 8 * n_bytes)).to_bytes(n_bytes, "little")
        return content[:at] + told + content[at + n_bytes :]

    def _cut(self, content: bytes, _: bytes) -> bytes:
        return content[: self._place(content)]

    def _without(self, content: bytes, _: bytes) -> bytes:
        begin, end = self._chunk(content)
        return content[:begin] + content[end:]

    def _twice(self, content: bytes, _: bytes) -> bytes:
        begin, end = self._chunk(content)
        n_times = min(self.one_of((1, 1, 2, 50, 5000)), max(MOST_BYTES // max(end - begin, 1), 1))
        return content[:end] + content[begin:end] * n_times + content[end:]

    def _swapped(self, content: bytes, _: bytes) -> bytes:
        (a, b), (c, d) = sorted((self._chunk(content), self._chunk(content)))
        return content if c < b else content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]

    def _spliced(self, content: bytes, other: bytes) -> bytes:
        begin, end = self._chunk(other)
        at = self._place(content)
        return content[:at] + other[begin:end] + content[at + self.one_of((0, end - begin)) :]

    # as text

    def _token(self, content: bytes, other: bytes) -> bytes:
        """Replace a number, a text or a word by an odd one, or by one of another file."""
        found = self._found(content)
        if found is None:
            return self._mark(content, other)
        told = self.one_of(_ODD_TEXTS).encode("utf-8", "surrogatepass")
        if not self._below(4) and (given := self._found(other)):
            told = given[0]
        return content[: found.start()] + told + content[found.end() :]

    def _mark(self, content: bytes, _: bytes) -> bytes:
        at = self._place(content)
        return content[:at] + self.one_of(_MARKS).encode() + content[at + self._below(2) :]

    def _line(self, content: bytes, other: bytes) -> bytes:
        """Take a line out, have it twice, move it, or take one of another file in."""
        lines, at = content.split(b"\n"), self._draw.random()
        place = int(at * len(lines))
        match self._below(4):
            case 0:
                del lines[place]
            case 1:
                lines[place:place] = [lines[place]] * self.one_of((1, 1, 1000))
            case 2:
                lines.insert(self._below(len(lines)), lines.pop(place))
            case _:
                lines.insert(place, self.one_of(other.split(b"\n")))
        return b"\n".join(lines)[: MOST_BYTES * 2]

    def _deep(self, content: bytes, _: bytes) -> bytes:
        found, depth = self._found(content), self.one_of(_DEPTHS)
        opening, closing = (each.encode() for each in self.one_of(_BRACKETS))
        if found is None:
            return opening * depth
        told = opening * depth + found[0] + closing * (depth if self._below(4) else 0)
        return content[: found.start()] + told + content[found.end() :]

    # as a tree

    def _json(self, content: bytes, other: bytes) -> bytes:
        try:
            tree, given = json.loads(content), json.loads(other)
        except (ValueError, RecursionError):
            return self._token(content, other)
        return self._json_text(self._tree(tree, given, self._raw)).encode("utf-8", "surrogatepass")

    def _json_line(self, content: bytes, other: bytes) -> bytes:
        lines = content.split(b"\n")
        place = self._below(len(lines))
        lines[place] = self._json(lines[place], self.one_of(other.split(b"\n")))
        return b"\n".join(lines)

    def _message(self, content: bytes, other: bytes) -> bytes:
        try:
            changed = self._tree(unpack(content), unpack(other), lambda: copy.copy(self.one_of(_ODD_VALUES)))
            return pack(changed)
        except (ValueError, RecursionError, TypeError, OverflowError):
            return self._flip(content, other)

    def _raw(self) -> str:
        """Stand for an odd text, which `_json_text` writes without quotes."""
        return f"\ue000{self._below(len(_ODD_TEXTS))}\ue000"

    def _json_text(self, tree: Any) -> str:
        text = json.dumps(tree, ensure_ascii=False, separators=self.one_of(((",", ":"), (", ", ": "))))
        return _RAW.sub(lambda found: _ODD_TEXTS[int(found[1]) % len(_ODD_TEXTS)], text)

    def _tree(self, tree: Any, given: Any, odd: Callable[[], Any]) -> Any:
        """Change one place of a tree."""
        way, part = [], tree
        while isinstance(part, dict | list) and part and (not way or self._below(6)):
            key = self.one_of(list(part)) if isinstance(part, dict) else self._below(len(part))
            way.append((part, key))
            part = part[key]
        if not way:
            return odd()
        above, key = way[-1]
        match self._below(8):
            case 0 | 1 | 2:
                above[key] = odd()
            case 3:
                del above[key]
            case 4:
                above[key] = self._some_part(given)
            case 5 if isinstance(above, list):
                above[key:key] = [above[key]] * self.one_of((1, 1, 2, 300))
            case 5:
                above[self.one_of(("", "schema", "x", "\u2028", "kind", "\x1b[31m"))] = above[key]
            case 6 if isinstance(part, bool | None):
                above[key] = [part]
            case 6:
                above[key] = part + self.one_of((-1, 1, 1 << 40)) if isinstance(part, int | float) else [part]
            case _:
                other = self.one_of(list(above)) if isinstance(above, dict) else self._below(len(above))
                above[key], above[other] = above[other], above[key]
        return tree

    def _some_part(self, tree: Any) -> Any:
        while isinstance(tree, dict | list) and tree and self._below(4):
            tree = self.one_of(list(tree.values()) if isinstance(tree, dict) else tree)
        return copy.deepcopy(tree)

    # what is drawn

    def _below(self, limit: int) -> int:
        return int(self._draw.random() * limit)

    def _place(self, content: bytes) -> int:
        """Draw a place; as often near the begin, where headers are, as anywhere."""
        return self._below(len(content) if self._below(2) else min(len(content), 96))

    def _chunk(self, content: bytes) -> tuple[int, int]:
        begin = self._below(len(content))
        return begin, min(len(content), begin + self.one_of((1, 2, 4, 8, 16, 64, 512)))

    def _found(self, content: bytes) -> re.Match[bytes] | None:
        return _TOKEN.search(content, self._below(len(content))) or _TOKEN.search(content)


_AS_BYTES = (
    *(Mutator._flip, Mutator._number, Mutator._step, Mutator._cut, Mutator._without, Mutator._twice),
    *(Mutator._swapped, Mutator._spliced),
)
_AS_TEXT = (*(Mutator._token, Mutator._token, Mutator._mark, Mutator._line) * 4, *_AS_BYTES, Mutator._deep)
_CHANGES = {
    Form.JSON: (*(Mutator._json,) * 24, *_AS_TEXT),
    Form.JSON_LINES: (*(Mutator._json_line,) * 24, *_AS_TEXT),
    Form.TEXT: _AS_TEXT,
    Form.MESSAGE_PACK: (*(Mutator._message,) * 16, *_AS_BYTES),
    Form.BINARY: _AS_BYTES,
}
