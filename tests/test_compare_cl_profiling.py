"""The comparison of the OpenCL layer's log with the file that llama.cpp's backend writes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from .loaded_tool import loaded_tool
from .synthetic_opencl import command, command_records, log_header, record, text_record

HEADER = "op name, kernel name, exec duration (ms), global size, local size, output size\n"
NAMES = ("alpha", "beta", "loader")

Log = Callable[..., Path]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return the tool as a module."""
    return loaded_tool("compare_cl_profiling")


def write_csv(folder: Path, *launches: tuple[str, int]) -> Path:
    """Write launches of one dimension, by name and duration."""
    rows = [f"op-{i},{name},{time_ns / 1e6:f},64x0x0,8x0x0,1x1x1x1\n" for i, (name, time_ns) in enumerate(launches)]
    path = folder / "cl_profiling.csv"
    path.write_text(HEADER + "".join(rows))
    return path


def write_log(folder: Path, *launches: tuple[str, int], n_lost: int = 0, local: Sequence[int] = (8, 0, 0)) -> Path:
    """Write the layer's log of launches, by name and duration."""
    made = [
        command(i, 1000 * i, [0, 1, 2, 2 + time_ns], name=NAMES.index(name) + 1, local=local, **{"global": (64, 1, 1)})
        for i, (name, time_ns) in enumerate(launches)
    ]
    queue = record(3, struct.pack("<IIII", 1, 1, 1, 0))
    loss = record(6, struct.pack("<IIQ", 1, 0, n_lost)) if n_lost else b""
    end = record(7, struct.pack("<QQQQq", len(made) + n_lost, len(made), n_lost, 0, 0))
    texts = [text_record(1, i + 1, name) for i, name in enumerate(NAMES)]
    device = text_record(2, 1, "platform\tdevice\tdriver")
    path = folder / "opencl-4711.log"
    path.write_bytes(log_header() + b"".join((*texts, device, queue, *map(command_records, made), loss, end)))
    return path


def run(tool: ModuleType, csv: Path, log: Path, *options: str) -> int:
    """Return the tool's exit code."""
    code: int = tool.main([str(csv), str(log), *options])
    return code


def test_equal_launches_agree(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same kernels in the same order with the same sizes and times agree."""
    launches = (("alpha", 1000), ("beta", 2000), ("alpha", 500))
    assert run(tool, write_csv(tmp_path, *launches), write_log(tmp_path, *launches)) == 0
    assert "layer over backend: 1.000000" in capsys.readouterr().out


def test_a_missing_launch_is_told(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that ran another number of times is named with both counts."""
    csv = write_csv(tmp_path, ("alpha", 1000), ("beta", 2000), ("beta", 2000))
    assert run(tool, csv, write_log(tmp_path, ("alpha", 1000), ("beta", 2000))) == 1
    assert "differs:      2 against      1  beta" in capsys.readouterr().out


def test_another_order_is_told(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal counts in another order do not agree."""
    csv = write_csv(tmp_path, ("alpha", 1000), ("beta", 1000))
    assert run(tool, csv, write_log(tmp_path, ("beta", 1000), ("alpha", 1000))) == 1
    assert "first launch that differs: 0" in capsys.readouterr().out


def test_other_sizes_are_told(tool: ModuleType, tmp_path: Path) -> None:
    """A launch with another size of its work groups is another launch."""
    csv = write_csv(tmp_path, ("alpha", 1000))
    assert run(tool, csv, write_log(tmp_path, ("alpha", 1000), local=(16, 0, 0))) == 1


@pytest.mark.parametrize(("time_ns", "code"), [(1019, 0), (1021, 1), (981, 0), (979, 1)])
def test_the_total_may_differ_by_the_limit(tool: ModuleType, tmp_path: Path, time_ns: int, code: int) -> None:
    """Durations agree within 2 % of the total, on either side."""
    assert run(tool, write_csv(tmp_path, ("alpha", 1000)), write_log(tmp_path, ("alpha", time_ns))) == code


def test_kernels_without_times_are_left_out_by_name(tool: ModuleType, tmp_path: Path) -> None:
    """A kernel that the backend does not time is a difference until it is named."""
    csv = write_csv(tmp_path, ("alpha", 1000))
    log = write_log(tmp_path, ("loader", 9), ("alpha", 1000))
    assert run(tool, csv, log) == 1
    assert run(tool, csv, log, "--untimed", "loader") == 0


def test_a_log_with_losses_is_refused(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts of a log that lost commands say nothing."""
    csv = write_csv(tmp_path, ("alpha", 1000))
    assert run(tool, csv, write_log(tmp_path, ("alpha", 1000), n_lost=3)) == 2
    assert "3 commands lost" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", HEADER + "op,alpha,soon,1x1x1,1x1x1,1\n"])
def test_what_is_no_profile_is_refused(
    tool: ModuleType, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty file compares to nothing; another file is named as such."""
    log = write_log(tmp_path, ("alpha", 1000))
    (tmp_path / "cl_profiling.csv").write_text(text)
    assert run(tool, tmp_path / "cl_profiling.csv", log) == (2 if text else 1)
    assert not text or "not a cl_profiling.csv" in capsys.readouterr().err
