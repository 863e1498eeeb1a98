"""The header of a GGUF file: its metadata and its table of tensors, with every defect named.

Read here and not by the ``gguf`` package, which loads the tokenizer's long arrays and reports a broken file by
whatever Python error it runs into.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from perfsuite.errors import GgufError
from perfsuite.units import format_bytes
from perfsuite.workload.ggml_types import GGML_TYPES_BY_NUMBER, GgmlType
from perfsuite.workload.tensors import TensorSpec

_MAGIC = b"GGUF"
_FETCH = "fetch the file again"
_VERSIONS = (2, 3)
_MAX_DIMENSIONS = 4
#: No file has more parts.
_MOST_PARTS = 999
_STRING, _ARRAY = 8, 9
#: How files are called that are parts of one: what ``llama-gguf-split`` writes, and pieces of its bytes.
_SPLIT = re.compile(r"(?P<begin>.*-)(?P<at>\d{5})(?P<of>-of-)(?P<count>\d{5})(?P<end>\.gguf)")
_PIECE = re.compile(r"(?P<begin>.*\.part)(?P<at>\d{1,3})(?P<of>of)(?P<count>\d{1,3})(?P<end>)")
_SCALARS = {**dict(enumerate(("B", "b", "H", "h", "I", "i", "f", "?"))), 10: "Q", 11: "q", 12: "d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorEntry:
    """One row of the tensor table."""

    spec: TensorSpec
    ggml_type: GgmlType
    #: Where the tensor's data begins, counted from the data section.
    offset_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.spec.n_rows * self.ggml_type.row_bytes(self.spec.ne[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What a GGUF says about itself before its tensor data begins."""

    #: Scalars only: arrays, most of them the tokenizer's, map to ``None``.
    metadata: Mapping[str, bool | int | float | str | None]
    tensors: tuple[TensorEntry, ...]
    size_bytes: int


def read_header(path: Path) -> GgufHeader:
    """Read and check a file's header; whatever llama.cpp could not load raises GgufError with the path."""
    try:
        if path.is_dir():
            raise GgufError(f"{path}: is a directory, expected a GGUF file")
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
            if start != _MAGIC:
                todo = joining(path, otherwise=f"expected {_MAGIC!r}")
                raise GgufError(f"{path}: is not a GGUF file: it begins with {start!r}; {todo}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                return _Cursor(path=path, view=view, position=len(_MAGIC)).header()
    except FileNotFoundError as error:
        raise GgufError(f"{path}: no such file") from error
    except OSError as error:
        raise GgufError(f"{path}: cannot be read: {error.strerror or error}") from error


def joining(path: Path, *, otherwise: str) -> str:
    """Return how the file becomes whole that this one is a part of by its name, or else what to do `otherwise`."""
    found = _SPLIT.fullmatch(path.name) or _PIECE.fullmatch(path.name)
    if found is None or int(found["count"]) > _MOST_PARTS:
        return otherwise
    begin, of, count, end = (found[each] for each in ("begin", "of", "count", "end"))
    n_digits = len(count) if end else 0
    names = [f"{begin}{at:0{n_digits}}{of}{count}{end}" for at in range(1, int(count) + 1)]
    lacking = [each for each in names if not path.with_name(each).is_file()]
    told = f"it is part {int(found['at'])} of {int(count)}"
    if lacking:
        return f"{told}, and {', '.join(lacking[:3])} {'is' if len(lacking) == 1 else 'are'} missing there"
    whole = f"{begin.rstrip('-')}.gguf" if end else begin.removesuffix(".part")
    merge = f"llama-gguf-split --merge {names[0]} {whole}" if end else f"cat {' '.join(names)} > {whole}"
    return f"{told}; join them with '{merge}'"


@dataclass(slots=True, kw_only=True)
class _Cursor:
    """Reads little-endian values one after the other and knows the file's end."""

    path: Path
    view: mmap.mmap
    position: int
    metadata: dict[str, bool | int | float | str | None] = field(default_factory=dict)

    def header(self) -> GgufHeader:
        self._check_version()
        n_tensors, n_keys = self._scalar("Q"), self._scalar("Q")
        for _ in range(n_keys):
            key = self._string()
            if key in self.metadata:
                raise GgufError(f"{self.path}: is damaged: its metadata has {key!r} twice")
            self.metadata[key] = self._value(self._scalar("I"))
        tensors = tuple(self._tensor() for _ in range(n_tensors))
        self._check_data(tensors)
        return GgufHeader(metadata=MappingProxyType(self.metadata), tensors=tensors, size_bytes=len(self.view))

    def _check_version(self) -> None:
        version = self._scalar("I")
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            seen = f"big-endian GGUF version {swapped}" if swapped in _VERSIONS else f"GGUF version {version}"
            raise GgufError(f"{self.path}: is {seen}, expected little-endian version 2 or 3; convert the model again")

    def _take(self, n_bytes: int) -> int:
        begin = self.position
        if n_bytes > len(self.view) - begin:
            size, todo = format_bytes(len(self.view)), joining(self.path, otherwise=_FETCH)
            raise GgufError(f"{self.path}: is truncated: its header goes on after {size}; {todo}")
        self.position += n_bytes
        return begin

    def _scalar(self, code: str) -> int:
        layout = f"<{code}"
        value: int = struct.unpack_from(layout, self.view, self._take(struct.calcsize(layout)))[0]
        return value

    def _string(self) -> str:
        n_bytes = self._scalar("Q")
        begin = self._take(n_bytes)
        return self.view[begin : begin + n_bytes].decode("utf-8", errors="replace")

    def _value(self, kind: int) -> bool | int | float | str | None:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            self._skip_array()
            return None
        return self._scalar(self._code(kind))

    def _code(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise GgufError(f"{self.path}: is damaged: metadata of unknown kind {kind} at byte {self.position}")
        return _SCALARS[kind]

    def _skip_array(self) -> None:
        kind, length = self._scalar("I"), self._scalar("Q")
        if kind == _STRING:
            for _ in range(length):
                self._take(self._scalar("Q"))
        else:
            self._take(length * struct.calcsize(f"<{self._code(kind)}"))

    def _tensor(self) -> TensorEntry:
        name, n_dimensions = self._string(), self._scalar("I")
        if not 1 <= n_dimensions <= _MAX_DIMENSIONS:
            raise GgufError(f"{self.path}: is damaged: tensor {name!r} has {n_dimensions} dimensions, expected 1 to 4")
        ne = tuple(self._scalar("Q") for _ in range(n_dimensions))
        number, offset_bytes = self._scalar("I"), self._scalar("Q")
        ggml_type = GGML_TYPES_BY_NUMBER.get(number)
        if ggml_type is None:
            raise GgufError(f"{self.path}: tensor {name!r} has ggml type {number}, which this suite does not know")
        if not ggml_type.fits(ne[0]):
            raise GgufError(
                f"{self.path}: tensor {name!r} has rows of {ne[0]} values, expected a multiple of "
                f"{ggml_type.name}'s block of {ggml_type.block_values}"
            )
        return TensorEntry(spec=TensorSpec(name=name, ne=ne), ggml_type=ggml_type, offset_bytes=offset_bytes)

    def _refuse_overlaps(self, tensors: tuple[TensorEntry, ...]) -> None:
        if double := next((name for name, n in Counter(each.spec.name for each in tensors).items() if n > 1), None):
            raise GgufError(f"{self.path}: is damaged: it has tensor {double!r} twice")
        in_order = sorted(tensors, key=lambda tensor: tensor.offset_bytes)
        for before, after in pairwise(in_order):
            if (end_bytes := before.offset_bytes + before.size_bytes) > after.offset_bytes:
                raise GgufError(
                    f"{self.path}: is damaged: tensor {before.spec.name!r} ends at byte {end_bytes} of the data, "
                    f"{after.spec.name!r} begins at {after.offset_bytes}"
                )

    def _check_data(self, tensors: tuple[TensorEntry, ...]) -> None:
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise GgufError(f"{self.path}: general.alignment is {alignment!r}, expected a positive power of 2")
        data_begin = -(-self.position // alignment) * alignment
        self._refuse_overlaps(tensors)
        end, last = max(((each.offset_bytes + each.size_bytes, each.spec.name) for each in tensors), default=(0, ""))
        if data_begin + end > len(self.view) and last:
            raise GgufError(
                f"{self.path}: is truncated: it has {len(self.view)} bytes, its tensor table demands "
                f"{data_begin + end} for {last!r}; {joining(self.path, otherwise=_FETCH)}"
            )
