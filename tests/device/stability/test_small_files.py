"""Reading and writing files that cannot be trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfsuite.device.stability.small_files import (
    Rotation,
    Source,
    entries,
    is_there,
    read_line,
    read_number,
)
from tests.sys_trees import UNREADABLE, put


def rotation(*n_reads: int) -> tuple[Rotation[int], list[int]]:
    """Sources of so many files each, and which of them were read; each tells how often it was."""
    read = list[int]()

    def source(place: int, n_files: int) -> Source[int]:
        def tell() -> int:
            read.append(place)
            return read.count(place)

        return Source(files=(Path("file"),) * n_files, read=tell)

    return Rotation(sources=[source(place, each) for place, each in enumerate(n_reads)]), read


@pytest.mark.parametrize(
    ("n_reads", "limit", "looks"),
    [
        ((1, 2, 2, 1), 3, [[0, 1], [2, 3], [0, 1], [2, 3]]),
        ((1, 1), 10, [[0, 1]]),
        ((5, 1), 3, [[0], [1]]),
        ((), 3, [[]]),
    ],
    ids=["in turns", "none twice in a look", "one beyond the limit is read alone", "nothing to read"],
)
def test_each_source_has_its_turn(n_reads: tuple[int, ...], limit: int, looks: list[list[int]]) -> None:
    found, read = rotation(*n_reads)
    for seen in looks:
        read.clear()
        found.read_some(limit)
        assert read == seen


def test_what_was_told_last_stands() -> None:
    found, _ = rotation(1, 1, 1)
    assert found.told == ()
    found.read_some(2)
    assert found.told == (1, 1)
    found.read_all()
    assert found.told == (2, 2, 1)


def test_a_value_comes_without_its_line_end(tmp_path: Path) -> None:
    """The kernel ends values with a line's end, device trees with a NUL."""
    assert read_line(put(tmp_path, "governor", b"schedutil\n")) == "schedutil"
    assert read_line(put(tmp_path, "model", b"Raspberry Pi 5\0")) == "Raspberry Pi 5"


@pytest.mark.parametrize("content", [None, "", b"\n", UNREADABLE, Path("/nowhere"), Path(".")])
def test_nothing_to_read_is_none(tmp_path: Path, content: str | bytes | Path | None) -> None:
    assert read_line(put(tmp_path, "temp", content)) is None
    assert read_number(tmp_path / "temp") is None


def test_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "temp")
    assert read_line(tmp_path / "temp") is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("42000", 42000), ("-274000", -274000), ("+7", 7)),
        *((text, None) for text in ("42.5", "4_2", "0x2a", "nan", "٤٢", "42 43", "9" * 40, "4" * 200_000)),
    ],
    ids=lambda each: str(each)[:9],
)
def test_a_number_is_one_of_the_kernels(tmp_path: Path, text: str, number: int | None) -> None:
    """Whole, with its sign; Python reads more as a number than the kernel writes."""
    assert read_number(put(tmp_path, "temp", text)) == number


def test_entries_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        (tmp_path / f"thermal_zone{number}").mkdir()
    names = [each.name for each in entries(tmp_path, "thermal_zone*")]
    assert names == ["thermal_zone1", "thermal_zone2", "thermal_zone10"]
    assert entries(tmp_path / "missing", "*") == ()


def test_where_one_may_not_look_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Android forbids even to ask whether some files are there."""

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path, "temp", "1")
    assert is_there(path)
    monkeypatch.setattr(os, "stat", forbidden)
    assert not is_there(path)
