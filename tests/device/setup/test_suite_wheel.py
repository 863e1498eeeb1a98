"""The suite as one wheel: what is in it, and when it is another one."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from perfsuite.device.setup.suite_wheel import (
    distribution_texts,
    engine_requirement,
    pack_suite,
    suite_digest,
    suite_requirements,
)

ROOT = Path(__file__).resolve().parents[3]


def test_the_wheel_holds_all_that_a_device_compiles_and_nothing_compiled() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_suite().content)) as archive:
        names = set(archive.namelist())
        record = archive.read("perfsuite-0.1.0.dist-info/RECORD").decode().splitlines()
    assert {
        "perfsuite/__init__.py",
        "perfsuite/device/probe/survey.sh",
        "perfsuite/device/profiles/host.toml",
        "perfsuite/_native/src/threads.c",
        "perfsuite/_native/src/engine/driver.cpp",
        "perfsuite-0.1.0.dist-info/entry_points.txt",
    } <= names
    assert any(name.startswith("perfsuite/_published/") for name in names)
    assert not [name for name in names if name.endswith((".so", ".pyc", ".o")) or name.startswith("tests")]
    assert {line.split(",")[0] for line in record} == names
    assert {name.partition("/")[0] for name in names} == {"perfsuite", "perfsuite-0.1.0.dist-info"}


def test_equal_content_is_an_equal_wheel() -> None:
    first, second = pack_suite(), pack_suite()
    assert hashlib.sha256(first.content).digest() == hashlib.sha256(second.content).digest()
    assert first.digest == second.digest == suite_digest()


def test_each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is made of what is packed: a file that changes meanwhile cannot have two identities."""
    read: list[Path] = []
    plain_read = Path.read_bytes

    def counted(path: Path) -> bytes:
        read.append(path)
        return plain_read(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    pack_suite()
    assert len(read) > 100
    assert len(read) == len(set(read))


def test_pip_is_told_what_the_checkout_requires_now(tmp_path: Path) -> None:
    texts = distribution_texts(ROOT)
    for requirement in suite_requirements(ROOT):
        assert f"Requires-Dist: {requirement}\n" in texts["METADATA"]
    assert "[pytest11]\nperfsuite = perfsuite.plugin\n" in texts["entry_points.txt"]
    assert engine_requirement(suite_requirements(ROOT)).startswith("llama-cpp-python==")
    texts = distribution_texts(tmp_path)
    assert engine_requirement(suite_requirements(tmp_path)) in texts["METADATA"]
    assert "perfsuite = perfsuite.plugin" in texts["entry_points.txt"]
