"""Points of a roofline run, grouped as a picture tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from perfsuite.expectation.roofline.point import Point
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row, RowKind
from perfsuite.records.chart import PointGroup
from perfsuite.report.roofline_findings import KIND_WORDS
from perfsuite.units import format_count, to_giga_per_s

#: The kinds of row that are not operators.
PHASES = (RowKind.PREFILL, RowKind.DECODE, RowKind.WHOLE_RUN)

#: The sweeps whose settings are a scale of colours, and what it tells.
SHADES: Mapping[str, str] = MappingProxyType({"depth": "layers", "length": "tokens of the prompt"})

#: The sweep whose prefills are joined over prompts, one line for each architecture.
_ROUTED = "moe"


def sweep_groups(run: RooflineRun, sweep: str, rows: Sequence[Row]) -> Iterator[PointGroup]:
    """Yield the points of a sweep: by kind where settings are colours, else by setting and kind."""
    if sweep in SHADES:
        for kind in dict.fromkeys(row.kind for row in rows):
            yield point_group(KIND_WORDS[kind], KIND_WORDS[kind], _of_kind(rows, kind), run, is_shaded=True)
        return
    for label in dict.fromkeys(map(_label, rows)):
        yield from groups_by_kind(run, label, [row for row in rows if _label(row) == label])


def groups_by_kind(run: RooflineRun, label: str, rows: Sequence[Row]) -> Iterator[PointGroup]:
    """Yield the points of one label, a group for each kind."""
    for kind in dict.fromkeys(row.kind for row in rows):
        yield point_group(label, KIND_WORDS[kind], _of_kind(rows, kind), run)


def point_group(
    label: str,
    kind: str,
    rows: Sequence[Row],
    run: RooflineRun,
    *,
    texts: tuple[str, ...] = (),
    is_shaded: bool = False,
) -> PointGroup:
    """Return the points of rows, with the ranges of their intensities where routing leaves them open."""
    points = [run.point(row) for row in rows]
    is_open = any(point.least_intensity < point.most_intensity for point in points)
    return PointGroup(
        label=label,
        kind=kind,
        x=tuple(point.operational_intensity for point in points),
        y=tuple(to_giga_per_s(point.flops_per_s) for point in points),
        least_x=tuple(point.least_intensity for point in points) if is_open else None,
        most_x=tuple(point.most_intensity for point in points) if is_open else None,
        shades=tuple(row.value or 0.0 for row in rows) if is_shaded else None,
        texts=texts,
        is_joined=is_shaded or all(row.sweep == _ROUTED and row.kind is RowKind.PREFILL for row in rows),
    )


def place_of(point: Point) -> tuple[float, float]:
    """Return where a point lies: FLOP/byte and FLOP/s."""
    return point.operational_intensity, point.flops_per_s


def _of_kind(rows: Sequence[Row], kind: RowKind) -> list[Row]:
    return sorted((row for row in rows if row.kind is kind), key=lambda row: row.value or 0.0)


def _label(row: Row) -> str:
    """Return what tells points of a sweep apart, in words."""
    words = {
        _ROUTED: row.subject.architecture,
        "kv": f"KV cache of {row.setting}",
        "flash": f"flash attention {row.setting}",
        "threads": format_count(row.subject.n_threads, "thread"),
    }
    return words.get(row.sweep, row.setting)
