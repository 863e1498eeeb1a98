"""The one codec: plain values out of JSON, TOML or MessagePack become frozen dataclasses, strictly, and go back.

What a file holds is stated once, by the types of a dataclass (or of a `TypedDict`, where the plain values are wanted):
a field without a default must be there, others may be missing from what earlier versions wrote. Whatever is of another
type is refused in one line with its place, what is there, and what is expected.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import Meta

from perfsuite.errors import PerfsuiteError, alike

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_Read = TypeVar("_Read")

#: Beyond it is no time, no count and no size; databases hold no more, and sums and quotients stay finite.
LARGEST = 2**63 - 1
_FINITE = float(2**63)

#: A whole number that is not negative, such as a time in ns; one of 1 or more; one of either sign.
Count = Annotated[int, Meta(ge=0, le=LARGEST, description="a whole number from 0 to below 2**63")]
Size = Annotated[int, Meta(ge=1, le=LARGEST, description="a whole number of 1 or more")]
Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST, description="a whole number below 2**63")]
#: A finite number; one of 0 or more; one above 0.
Number = Annotated[float, Meta(ge=-_FINITE, le=_FINITE, description="a finite number")]
Amount = Annotated[float, Meta(ge=0.0, le=_FINITE, description="a finite number of 0 or more")]
Positive = Annotated[float, Meta(gt=0.0, le=_FINITE, description="a finite number above 0")]
Name = Annotated[str, Meta(min_length=1, description="a text that is not empty")]

#: What `plain_json` may return of a file that does not exist, which no file holds.
ABSENT = object()

#: Fields by which an object of a list is known: the way to it goes by them.
_KEYS = ("id", "case_id")
#: What msgspec says of a row with too many or too few values.
_LENGTHS = re.compile(r"Expected `array` of length (\d+), got (\d+)")
#: No file of the suite is as large, so that one that is no file of its own does not fill the memory.
_MOST_BYTES = 1 << 30
_LEAST_READ_BYTES = 1 << 16
_MOST_CHARACTERS = 60
#: Where JSON may have half a character.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")

_WORDS = {
    str: "text",
    bytes: "bytes in base64",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


def read_json(
    path: Path, kind: type[_Read], error: type[PerfsuiteError], todo: str, *, absent: Any = ..., **how: Any
) -> _Read:
    """Read a file of JSON; of one that does not exist return `absent`, where that is given.

    Raises PerfsuiteError: of type `error`: the file cannot be read, is not JSON, or `from_plain` refuses it, which
    takes `how`.
    """
    plain = plain_json(path, error, todo, absent=absent if absent is ... else ABSENT)
    return absent if plain is ABSENT else from_plain(plain, kind, str(path), error, todo, **how)


def read_toml(path: Path, kind: type[_Read], error: type[PerfsuiteError], todo: str, **how: Any) -> _Read:
    """Read a file of TOML as `read_json` reads JSON."""
    plain = parse_toml(content_of(path, error, todo), str(path), error, todo)
    return from_plain(plain, kind, str(path), error, todo, **how)


def parse_toml(content: bytes, where: str, error: type[PerfsuiteError], todo: str) -> dict[str, Any]:
    """Parse TOML, with the line ends of any system; raises an `error` for what is none, or not UTF-8."""
    try:
        return tomllib.loads(content.decode("utf-8").replace("\r\n", "\n"))
    except (ValueError, RecursionError) as reason:
        raise error(f"{where}: is not TOML ({in_one_line(reason)}); {todo}") from reason


def plain_json(
    path: Path, error: type[PerfsuiteError], todo: str, *, absent: Any = ..., allows_nan: bool = False
) -> Any:
    """Read a file of JSON as plain values; of one that does not exist return `absent`, where that is given."""
    if absent is not ... and not os.path.lexists(path):
        return absent
    return parsed_json(content_of(path, error, todo), str(path), error, todo, allows_nan=allows_nan)


def parsed_json(
    text: str | bytes, where: str, error: type[PerfsuiteError], todo: str, *, allows_nan: bool = False
) -> Any:
    """Parse JSON as `parse_json` does; a mistake names where it is."""
    try:
        return parse_json(text, allows_nan=allows_nan)
    except (ValueError, RecursionError) as reason:
        raise error(f"{where}: is not JSON ({in_one_line(reason)}); {todo}") from reason


def parse_json(text: str | bytes, *, allows_nan: bool = False) -> Any:
    """Parse JSON; raises ValueError also for a name that an object has twice, NaN, the infinities, and great depth."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number of JSON")

    decoded = text if isinstance(text, str) else text.decode("utf-8")
    try:
        plain = json.loads(decoded, object_pairs_hook=_object, parse_constant=None if allows_nan else refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _HALF.search(decoded):
        json.dumps(plain, ensure_ascii=False).encode()  # half a character, which no file may hold
    return plain


def from_plain(
    plain: object,
    kind: type[_Read],
    where: str,
    error: type[PerfsuiteError],
    todo: str,
    *,
    schema: int | None = None,
    is_closed: bool = False,
) -> _Read:
    """Build what plain values hold; a message begins with `where` and ends with `todo`, what to do.

    The field ``schema`` must hold `schema`, where there is one. If `is_closed`, fields that `kind` has not are refused;
    else they are passed over.

    Raises PerfsuiteError: of type `error`: something is missing, unknown, or of another type.
    """
    seen = plain.get("schema") if isinstance(plain, Mapping) else None
    if schema is not None and isinstance(plain, Mapping) and (seen != schema or type(seen) is not int):
        raise error(f"{where}: schema is {shown(seen) if 'schema' in plain else 'missing'}, expected {schema}; {todo}")
    try:
        built = msgspec.convert(plain, kind)
    except (msgspec.ValidationError, PerfsuiteError):
        raise error(f"{where}: {_fault(plain, kind).lstrip('.: ')}; {todo}") from None
    known = () if schema is None else ("schema",)
    if is_closed and (unknown := _unknown(plain, kind, known)):
        raise error(f"{where}: {unknown.lstrip('.: ')}; {todo}")
    return built


def to_plain(record: Any, *, rows: Iterable[str] = ()) -> Any:
    """Return a record as dicts, tuples, numbers and strings, as `from_plain` and `rebuilt` read it again.

    The records under the fields of `rows`, of which there are thousands, are tuples of their fields in order.
    """
    plain = msgspec.to_builtins(record, enc_hook=_own_number)
    for name in rows:
        plain[name] = [tuple(each.values()) for each in plain[name]]
    return plain


def rebuilt(plain: Mapping[str, Any], kind: type[_Read], **rows: Any) -> _Read:
    """Build what another process of the suite made plain; raises ValueError for anything else.

    `rows` are the kinds of record that are tuples of their fields, by the field that they are under.
    """
    try:
        named = {field: tuple(from_row(row, of) for row in plain[field]) for field, of in rows.items()}
        return msgspec.convert({**plain, **named}, kind)
    except (msgspec.ValidationError, TypeError, KeyError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None


class Plain:
    """A record that goes to another process, or into a file, as plain values and comes back."""

    __slots__ = ()
    #: Kinds of record that are tuples there, by the field that they are under.
    ROWS: ClassVar[Mapping[str, Any]] = {}

    def to_plain(self) -> dict[str, Any]:
        """Return dicts, lists, numbers and strings."""
        plain: dict[str, Any] = to_plain(self, rows=self.ROWS)
        return plain

    @classmethod
    def from_plain(cls: type[_Read], plain: Mapping[str, Any]) -> _Read:
        """Rebuild from `to_plain`; raises as `rebuilt` does."""
        return rebuilt(plain, cls, **cls.ROWS)  # type: ignore[attr-defined]


def from_row(row: Any, kind: type[_Read]) -> _Read:
    """Build a record from the tuple of its fields; raises ValueError for anything else."""
    names: Any = kind
    try:
        return msgspec.convert(dict(zip(_hints(names), row, strict=True)), kind)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        message = f"a row is {repr(row)[:_MOST_CHARACTERS]}, expected {', '.join(_hints(names))}"
        raise ValueError(f"{message} ({error})") from None


def pack(plain: Any) -> bytes:
    """Return plain values as MessagePack."""
    return msgspec.msgpack.encode(plain, enc_hook=_own_number)


def unpack(content: bytes | memoryview) -> Any:
    """Read plain values from MessagePack; raises ValueError for what is none."""
    try:
        return msgspec.msgpack.decode(content)
    except (msgspec.DecodeError, RecursionError, TypeError) as error:
        raise ValueError(str(error)) from None


def double(names: Iterable[object]) -> str | None:
    """Say which name is there twice, where one is: a table by that name would lose one."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    return f"[{shown(twice[0])}] is there twice" if twice else None


def shown(value: object) -> str:
    """Return a value as an error shows it: in one line, and cut where it is long."""
    if isinstance(value, list | tuple | Mapping):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = "null" if value is None else repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def content_of(path: Path, error: type[PerfsuiteError], todo: str, *, most_bytes: int = _MOST_BYTES) -> bytes:
    """Return what a file holds, which has at most so many bytes; raises an `error` naming the file for another."""
    content = b""
    try:
        with path.open("rb") as file:
            # one read of so many bytes would ask for as much memory, however short the file
            while len(content) <= most_bytes and (piece := file.read(max(len(content), _LEAST_READ_BYTES))):
                content += piece
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror}); {todo}") from reason
    if len(content) > most_bytes:
        raise error(f"{path}: has more than {most_bytes:,} bytes; {todo}")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"of an object{double(name for name, _ in pairs)}")
    return made


def _own_number(value: object) -> float:
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(f"{type(value).__name__} is nothing that a file holds")


def in_one_line(reason: BaseException) -> str:
    """Return why something failed in one line."""
    return " ".join(str(reason).split())


def _fault(plain: object, kind: Any) -> str:
    """Say where and why plain values are not of a kind: the deepest place that does not fit."""
    for way, part, inner in _parts(plain, kind):
        if _complaint(part, inner) is not None:
            return f"{way}{_fault(part, inner)}"
    words = _words(kind)
    if not isinstance(plain, list | tuple | Mapping) or shown(plain) not in words:
        return f" is {shown(plain)}, expected {words}"
    complaint = _complaint(plain, kind) or ""
    missing = complaint.partition("missing required field `")[2].partition("`")[0]
    if missing:
        return f": {missing} is missing"
    lengths = _LENGTHS.fullmatch(complaint)
    return f" has {lengths[2]} values, expected {lengths[1]}" if lengths else f": {complaint}"


def _complaint(plain: object, kind: Any) -> str | None:
    try:
        msgspec.convert(plain, kind)
    except (msgspec.ValidationError, PerfsuiteError) as error:
        return str(error)
    return None


def _unknown(plain: object, kind: Any, known: Collection[str] = ()) -> str | None:
    """Say which field there is that nobody reads."""
    hints = [*known, *_hints(kind)]
    if isinstance(plain, Mapping) and _hints(kind) and (unknown := [name for name in plain if name not in hints]):
        told = "".join(f" (did you mean {each}?)" for each in alike(unknown[0], hints))
        return f": field {shown(unknown[0])} is unknown; accepted are {', '.join(hints)}{told}"
    parts = ((way, _unknown(part, inner)) for way, part, inner in _parts(plain, kind))
    return next((f"{way}{fault}" for way, fault in parts if fault), None)


def _parts(plain: object, kind: Any) -> Iterator[tuple[str, object, Any]]:
    """Yield the way to each part of a value, the part, and of what kind it must be."""
    for each in _alternatives(kind):
        arguments = get_args(each)
        if isinstance(plain, Mapping) and (hints := _hints(each)):
            yield from ((f".{name}", plain[name], hints[name]) for name in hints if name in plain)
        elif isinstance(plain, Mapping) and get_origin(each) in (dict, Mapping):
            yield from ((f"[{shown(name)}]", part, arguments[1]) for name, part in plain.items())
        elif isinstance(plain, list | tuple) and get_origin(each) in (tuple, list):
            has_any_length = get_origin(each) is list or ... in arguments
            kinds = arguments[:1] * len(plain) if has_any_length else arguments
            if len(kinds) == len(plain):
                ways = (_way(place, part) for place, part in enumerate(plain))
                yield from zip(ways, plain, kinds, strict=True)


def _way(place: int, part: object) -> str:
    names = (part[key] for key in _KEYS if key in part) if isinstance(part, Mapping) else ()
    return f"[{next(map(shown, names), place)}]"


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return what a kind may be, without what is stated of it beside its type."""
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(inner for each in get_args(kind) for inner in _alternatives(each))
    return (kind,)


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the fields of an object and their types, nothing of what is none."""
    objects = (each for each in _alternatives(kind) if is_typeddict(each) or is_dataclass(each))
    hints = next((get_type_hints(each, include_extras=True) for each in objects), {})
    return {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}


def _words(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        said = (each.description for each in get_args(kind)[1:] if isinstance(each, Meta) and each.description)
        return next(said, None) or _words(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return ", or ".join(_words(each) for each in get_args(kind))
    if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        values = get_args(kind) or [each.value for each in kind]
        return f"one of {', '.join(map(str, values))}"
    if kind in _WORDS:
        return _WORDS[kind]
    origin = get_origin(kind) or kind
    return "an object" if _hints(kind) or (isinstance(origin, type) and issubclass(origin, Mapping)) else "a list"


def plain_fields(record: object, *names: str) -> dict[str, Any]:
    """Return the named attributes of a record; those that are records themselves are for the caller."""
    return {name: getattr(record, name) for name in names}
