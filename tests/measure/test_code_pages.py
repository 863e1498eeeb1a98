"""Pages of its own for an engine's code."""

from __future__ import annotations

import ctypes
import re
import shutil
from pathlib import Path

import pytest

from perfsuite.measure import code_pages
from perfsuite.measure.code_pages import own_code_pages


@pytest.fixture
def library(tmp_path: Path) -> tuple[Path, ctypes.CDLL]:
    """Return a folder with a copy of the C library of mathematics, which this process has opened."""
    found = re.search(r"(/\S*/libm\.so\.6)$", Path("/proc/self/maps").read_text("utf-8"), re.MULTILINE)
    if found is None:
        pytest.skip("the interpreter has no libm.so.6 of its own")
    copy = shutil.copy(found[1], tmp_path / "libown.so")
    opened = ctypes.CDLL(str(copy))
    opened.cos.restype, opened.cos.argtypes = ctypes.c_double, [ctypes.c_double]
    return tmp_path, opened


def anonymous_bytes(folder: Path) -> int:
    """Sum up what this process has of its own in the mappings of a folder's files."""
    text = Path("/proc/self/smaps").read_text("utf-8")
    mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    own = [mapping for mapping in mappings if str(folder) in mapping.partition("\n")[0]]
    return sum(
        1024 * int(size) for mapping in own for size in re.findall(r"^Anonymous: +(\d+) kB", mapping, re.MULTILINE)
    )


def test_a_process_gets_pages_of_its_own(library: tuple[Path, ctypes.CDLL]) -> None:
    """All that is mapped read-only is copied, stays where it was, and works as before."""
    folder, opened = library
    before = anonymous_bytes(folder)
    assert opened.cos(0.0) == 1.0
    n_bytes = own_code_pages(opened, folder)
    assert n_bytes > 500_000
    assert anonymous_bytes(folder) >= max(n_bytes, before)
    assert opened.cos(0.0) == 1.0
    executed = [line for line in Path("/proc/self/maps").read_text("utf-8").splitlines() if str(folder) in line]
    assert not any(" rwx" in line for line in executed)


def test_other_libraries_are_left_alone(tmp_path: Path) -> None:
    """A folder that nothing is mapped from has nothing to copy, though others of the process do."""
    assert own_code_pages(ctypes.CDLL(None), tmp_path) == 0


def test_a_system_without_maps_copies_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no list of mappings, the pages stay those of the file."""
    monkeypatch.setattr(code_pages, "_MAPS", tmp_path / "missing")
    assert own_code_pages(ctypes.CDLL(None), tmp_path) == 0
