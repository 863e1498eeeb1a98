"""A timeline as Chrome's trace events, which Perfetto, Chrome's own viewer and Speedscope read.

*Source*: 'Trace Event Format', Google, 2016: the object form; phases M (names), X (slices), i (instants), C (counters),
s, t and f (arrows); ``ts`` and ``dur`` in µs, here with three digits behind the point, which are ns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import NOTHING, EngineTrace
from perfsuite.records.whole_file import write_whole_chunks
from perfsuite.report.timeline.bytes import Numbers, Rows, Texts, constant, decimal, side_by_side, thousandths
from perfsuite.trace.timeline.build import build_timeline
from perfsuite.trace.timeline.tracks import Arrow, Points, Slices, Timeline, TrackKind

#: Records that are encoded at once.
_CHUNK = 1 << 15
#: The process's number where it is not known.
_NO_PID = 1
_ARROW_PHASES = {Arrow.BEGINS: b"s", Arrow.PASSES: b"t", Arrow.ENDS: b"f"}


def write_chrome_trace(trace: EngineTrace, path: Path) -> None:
    """Write a trace as a timeline in Chrome's JSON.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    write_whole_chunks(path, chrome_trace(build_timeline(trace)), PerfsuiteError)


def chrome_trace(timeline: Timeline) -> Iterator[bytes]:
    """Yield the pieces of a file."""
    notes = json.dumps(dict(timeline.notes))
    yield b'{"displayTimeUnit":"ns","otherData":%s,"traceEvents":[\n' % notes.encode("ascii")
    yield b",\n".join(json.dumps(each, separators=(",", ":")).encode("ascii") for each in _metadata(timeline))
    labels = _Labels(timeline)
    for first in range(0, len(timeline.slices), _CHUNK):
        yield from labels.slices(timeline.slices[first : first + _CHUNK])
    for first in range(0, len(timeline.points), _CHUNK):
        yield labels.points(timeline.points[first : first + _CHUNK])
    yield b"\n]}\n"


def _pid(timeline: Timeline) -> int:
    return _NO_PID if timeline.pid is None else timeline.pid


def _metadata(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Name the process, and each track in its order; a track's number stands where Chrome has a thread's."""
    pid = _pid(timeline)
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": timeline.tracks[0].name}}
    for number, track in enumerate(timeline.tracks):
        if track.kind in (TrackKind.THREAD, TrackKind.SLICES):
            yield {"ph": "M", "pid": pid, "tid": number, "name": "thread_name", "args": {"name": track.name}}
            yield {"ph": "M", "pid": pid, "tid": number, "name": "thread_sort_index", "args": {"sort_index": number}}


class _Labels:
    def __init__(self, timeline: Timeline) -> None:
        self._pid = str(_pid(timeline)).encode("ascii")
        self._labels = Texts(
            [
                b'"cat":%s,"name":%s,"args":{"about":%s'
                % tuple(_text(each) for each in (label.category, label.name, label.about))
                for label in timeline.labels
            ]
        )
        self._counters = Texts([_text(track.name) for track in timeline.tracks])
        self._units = Texts([_text(track.unit or "") for track in timeline.tracks])

    def slices(self, slices: Slices) -> Iterator[bytes]:
        n_records = len(slices)
        is_instant = slices["end_ns"] == NOTHING
        duration_ns = np.where(is_instant, 0, slices["end_ns"] - slices["start_ns"])
        fields = [
            constant(b',\n{"ph":', n_records),
            constant(b'"i","s":"t"', n_records).where(is_instant),
            side_by_side([constant(b'"X","dur":', n_records), thousandths(duration_ns)]).where(~is_instant),
            *self._place(slices["start_ns"], slices["track"]),
            constant(b",", n_records),
            self._labels.of(slices["label"]),
            *(_known(slices, name) for name in ("cpu", "iteration", "evaluation")),
            constant(b"}}", n_records),
        ]
        yield side_by_side(fields).joined()
        yield from self._arrows(slices)

    def points(self, points: Points) -> bytes:
        n_records = len(points)
        fields = [
            constant(b',\n{"ph":"C"', n_records),
            *self._place(points["ns"], points["track"]),
            constant(b',"name":', n_records),
            self._counters.of(points["track"]),
            constant(b',"args":{', n_records),
            self._units.of(points["track"]),
            constant(b":", n_records),
            decimal(points["value"]),
            constant(b"}}", n_records),
        ]
        return side_by_side(fields).joined()

    def _arrows(self, slices: Slices) -> Iterator[bytes]:
        for arrow, phase in _ARROW_PHASES.items():
            chosen = slices[slices["arrow"] == arrow]
            if len(chosen):
                fields = [
                    constant(b',\n{"ph":"%s","bp":"e","cat":"flow","name":"kernels","id":' % phase, len(chosen)),
                    decimal(chosen["flow"]),
                    *self._place(chosen["start_ns"], chosen["track"]),
                    constant(b"}", len(chosen)),
                ]
                yield side_by_side(fields).joined()

    def _place(self, ns: Numbers, track: Numbers) -> tuple[Rows, ...]:
        before_track = constant(b',"pid":%s,"tid":' % self._pid, len(ns))
        return constant(b',"ts":', len(ns)), thousandths(ns), before_track, decimal(track)


def _known(slices: Slices, name: str) -> Rows:
    known = slices[name] >= 0
    key = constant(b',"%s":' % name.encode("ascii"), len(slices))
    return side_by_side([key, decimal(np.where(known, slices[name], 0))]).where(known)


def _text(text: str) -> bytes:
    return json.dumps(text).encode("ascii")
