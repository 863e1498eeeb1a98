"""A timeline as a Perfetto trace: packets that describe tracks, then packets of their events.

*Source*: perfetto.dev, 'Writing TrackEvent Protos Synthetically', and protos/perfetto/trace of Perfetto 0.59: the
numbers of fields below. All times are of the clock MONOTONIC, which the first packet makes the trace's own.

Events are written many at once: fields are side by side in a matrix, one row a record, with a mask of the bytes that
count. A field is as wide as its widest value; what a narrower one leaves free is masked out when the rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import NOTHING, EngineTrace
from perfsuite.records.whole_file import write_whole_chunks
from perfsuite.trace.timeline.build import build_timeline
from perfsuite.trace.timeline.tracks import Arrow, Label, Points, Slices, Timeline, Track, TrackKind

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.integer]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A field of all records: `cells` and `mask` are of one shape, records x bytes."""

    cells: Bytes
    mask: Mask

    @cached_property
    def sizes(self) -> Ints:
        """How many bytes each record has."""
        sizes: Ints = np.count_nonzero(self.mask, axis=1)
        return sizes

    def where(self, chosen: Mask) -> Rows:
        """Return the field for the chosen records, and nothing for the others."""
        return Rows(cells=self.cells, mask=self.mask & chosen[:, np.newaxis])

    def joined(self) -> bytes:
        """Return the records one behind the other."""
        return self.cells[self.mask].tobytes()


def side_by_side(fields: Sequence[Rows]) -> Rows:
    """Return records that have all the fields in order."""
    return Rows(
        cells=np.concatenate([each.cells for each in fields], axis=1),
        mask=np.concatenate([each.mask for each in fields], axis=1),
    )


def constant(content: bytes, n_records: int) -> Rows:
    """Return a field that is the same in all records."""
    cells = np.broadcast_to(np.frombuffer(content, dtype=np.uint8), (n_records, len(content)))
    return Rows(cells=cells, mask=np.ones(cells.shape, dtype=np.bool_))


def varint(values: Numbers) -> Rows:
    """Return numbers from 0 on as protobuf writes them: seven bits a byte, the lowest first.

    *Source*: protobuf.dev, Encoding, 'Base 128 Varints'.
    """
    rest = values.astype(np.int64)
    width = max(1, -(-int(rest.max()).bit_length() // 7)) if len(rest) else 1
    cells = np.empty((len(rest), width), dtype=np.uint8)
    mask = np.empty(cells.shape, dtype=np.bool_)
    for place in range(width):
        mask[:, place] = (rest > 0) | (place == 0)
        more = rest >> 7
        cells[:, place] = (rest & 0x7F) | np.where(more > 0, 0x80, 0)
        rest = more
    return Rows(cells=cells, mask=mask)


def fixed64(values: Numbers) -> Rows:
    """Return numbers as eight bytes, the lowest first."""
    cells = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(-1, 8)
    return Rows(cells=cells, mask=np.ones(cells.shape, dtype=np.bool_))


def tag(field: int, wire_type: int) -> bytes:
    """Return what begins a field: 0 a number, 1 eight bytes, 2 bytes with their length."""
    return _varint(field << 3 | wire_type)


def number_field(field: int, value: int) -> bytes:
    """Return a number from 0 on."""
    return tag(field, 0) + _varint(value)


def bytes_field(field: int, content: bytes) -> bytes:
    """Return bytes, or a message."""
    return tag(field, 2) + _varint(len(content)) + content


def text_field(field: int, text: str) -> bytes:
    """Return a text."""
    return bytes_field(field, text.encode("utf-8"))


def _varint(value: int) -> bytes:
    return varint(np.asarray([value])).joined()


#: Records that are encoded at once.
_CHUNK = 1 << 15

#: Values of protos/perfetto/common/builtin_clock.proto, trace_packet.proto and track_event.proto.
_MONOTONIC = 3
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_SLICE_BEGIN, _SLICE_END, _INSTANT, _COUNTER = 1, 2, 3, 4
_EXPLICIT_ORDER = 3

#: All packets are of one sequence, on which names are interned once.
_SEQUENCE = 1
#: What annotations are called; their numbers are the positions, from 1 on.
_ANNOTATIONS = ("about", "cpu", "iteration", "evaluation")


def write_perfetto(trace: EngineTrace, path: Path) -> None:
    """Write a trace as a timeline in Perfetto's protobuf.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    write_whole_chunks(path, perfetto_trace(build_timeline(trace)), PerfsuiteError)


def perfetto_trace(timeline: Timeline) -> Iterator[bytes]:
    """Yield the pieces of a file."""
    categories = tuple(dict.fromkeys(label.category for label in timeline.labels))
    yield _first_packet(timeline, categories)
    yield b"".join(_track_packet(timeline, number) for number in range(len(timeline.tracks)))
    category_of_label = np.asarray([categories.index(label.category) + 1 for label in timeline.labels], dtype=np.int64)
    for first in range(0, len(timeline.slices), _CHUNK):
        yield _slice_packets(timeline.slices[first : first + _CHUNK], category_of_label)
    for first in range(0, len(timeline.points), _CHUNK):
        yield _point_packets(timeline.points[first : first + _CHUNK])


def _first_packet(timeline: Timeline, categories: tuple[str, ...]) -> bytes:
    starts_ns = [*timeline.slices["start_ns"][:1].tolist(), *timeline.points["ns"][:1].tolist()]
    start_ns = min(starts_ns, default=0)
    clock = number_field(1, _MONOTONIC) + number_field(2, start_ns)
    content = [
        number_field(8, start_ns),
        number_field(10, _SEQUENCE),
        number_field(13, _STATE_CLEARED),
        number_field(87, 1),
        bytes_field(59, number_field(58, _MONOTONIC)),
        bytes_field(6, bytes_field(1, clock) + number_field(2, _MONOTONIC)),
        bytes_field(12, _interned(timeline.labels, categories)),
    ]
    return bytes_field(1, b"".join(content))


def _interned(labels: tuple[Label, ...], categories: tuple[str, ...]) -> bytes:
    """Return event_categories, event_names, debug_annotation_names and debug_annotation_string_values."""
    names = [label.name for label in labels]
    told = [label.about for label in labels]
    fields = ((1, categories), (2, names), (3, _ANNOTATIONS), (29, told))
    return b"".join(
        bytes_field(field, number_field(1, number) + text_field(2, text))
        for field, texts in fields
        for number, text in enumerate(texts, start=1)
    )


def _track_packet(timeline: Timeline, number: int) -> bytes:
    """Return a track's descriptor; its id is its position, from 1 on."""
    track = timeline.tracks[number]
    fields = [number_field(1, number + 1), *_kind_fields(timeline, track)]
    if track.parent is not None:
        fields += [number_field(5, track.parent + 1), number_field(12, number)]
    return bytes_field(1, number_field(10, _SEQUENCE) + bytes_field(60, b"".join(fields)))


def _kind_fields(timeline: Timeline, track: Track) -> Iterator[bytes]:
    if track.kind is TrackKind.PROCESS and timeline.pid is not None:
        yield bytes_field(3, number_field(1, timeline.pid) + text_field(6, track.name))
    elif track.kind is TrackKind.THREAD and timeline.pid is not None:
        thread = number_field(1, timeline.pid) + number_field(2, track.tid or 0) + text_field(5, track.name)
        yield bytes_field(4, thread)
    else:
        yield text_field(2, track.name)
    if track.kind is TrackKind.PROCESS:
        yield number_field(11, _EXPLICIT_ORDER)
    if track.kind is TrackKind.COUNTER:
        yield bytes_field(8, text_field(6, track.unit or ""))


def _slice_packets(slices: Slices, category_of_label: Numbers) -> bytes:
    """Return for each slice the packets of its begin and its end, one behind the other."""
    is_instant = slices["end_ns"] == NOTHING
    label = slices["label"].astype(np.int64)
    begin = [
        _number(9, np.where(is_instant, _INSTANT, _SLICE_BEGIN)),
        _number(11, slices["track"] + 1),
        _number(3, category_of_label[label]),
        _number(10, label + 1),
        _message(4, [_number(1, np.ones_like(label)), _number(17, label + 1)]),
        *(_annotation(slices, name) for name in _ANNOTATIONS[1:]),
        *_arrow_fields(slices),
    ]
    end = [_number(9, np.full(len(slices), _SLICE_END)), _number(11, slices["track"] + 1)]
    packets = [
        _event_packet(slices["start_ns"], begin),
        _event_packet(np.where(is_instant, 0, slices["end_ns"]), end).where(~is_instant),
    ]
    return side_by_side(packets).joined()


def _arrow_fields(slices: Slices) -> Iterator[Rows]:
    """Yield flow_ids of the slices where an arrow begins or passes, terminating_flow_ids of those where it ends."""
    ends: Mask = slices["arrow"] == Arrow.ENDS
    for field, chosen in ((47, (slices["arrow"] > 0) & ~ends), (48, ends)):
        if chosen.any():
            yield side_by_side([constant(tag(field, 1), len(slices)), fixed64(slices["flow"])]).where(chosen)


def _annotation(slices: Slices, name: str) -> Rows:
    known = slices[name] >= 0
    number = np.full(len(slices), _ANNOTATIONS.index(name) + 1)
    return _message(4, [_number(1, number), _number(4, np.where(known, slices[name], 0))]).where(known)


def _point_packets(points: Points) -> bytes:
    fields = [
        _number(9, np.full(len(points), _COUNTER)),
        _number(11, points["track"] + 1),
        _number(30, points["value"]),
    ]
    return _event_packet(points["ns"], fields).joined()


def _event_packet(ns: Numbers, event: list[Rows]) -> Rows:
    content = [
        _number(8, ns),
        constant(number_field(10, _SEQUENCE) + number_field(13, _NEEDS_STATE), len(ns)),
        _message(11, event),
    ]
    return _message(1, content)


def _number(field: int, values: Numbers) -> Rows:
    return side_by_side([constant(tag(field, 0), len(values)), varint(values)])


def _message(field: int, fields: list[Rows]) -> Rows:
    content = side_by_side(fields)
    return side_by_side([constant(tag(field, 2), len(content.cells)), varint(content.sizes), content])
