"""Building programs with a made-up OpenCL: what is kept, and what a failure leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import KernelLaunch
from perfsuite.measure.kernel_programs import KernelPrograms

CONTEXT: Any = SimpleNamespace(devices=[SimpleNamespace(name="Fake GPU ")])
LAUNCH = KernelLaunch(source="pointwise.cl", entry="add", inputs=(), scalars=(), global_size=(1,), expected=np.zeros(1))


class _FakeProgram:
    built: list[str]

    def __init__(self, context: Any, source: str) -> None:
        self.source = source

    def build(self, options: list[str]) -> None:
        if "broken" in self.source:
            raise cl.Error("error: use of undeclared identifier 'broken'")
        self.built.append(" ".join(options))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    _FakeProgram.built = []
    monkeypatch.setattr(cl, "Program", _FakeProgram)
    monkeypatch.setattr(cl, "Kernel", lambda program, name: SimpleNamespace(name=name))
    return _FakeProgram.built


def test_built_once(built: list[str], tmp_path: Path) -> None:
    programs = KernelPrograms(CONTEXT, kernels_dir=KERNELS_DIR, log_dir=tmp_path)
    assert programs.kernel(LAUNCH) is programs.kernel(LAUNCH)
    programs.kernel(replace(LAUNCH, defines=(("GROUP", 64),)))
    assert built == ["-cl-std=CL1.2", "-cl-std=CL1.2 -DGROUP=64"]


def test_what_is_built_is_kept_for_the_next_process(
    built: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next one builds from the binary; another source, or other options, from the source again."""
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(_FakeProgram, "__init__", lambda self, context, *of: made.append(of))
    monkeypatch.setattr(_FakeProgram, "build", lambda self, options: None)
    monkeypatch.setattr(_FakeProgram, "get_info", lambda self, info: [b"binary"], raising=False)
    for defines in ((), (), (("GROUP", 64),)):
        programs = KernelPrograms(CONTEXT, kernels_dir=KERNELS_DIR, log_dir=tmp_path, built_dir=tmp_path)
        programs.kernel(replace(LAUNCH, defines=defines))
    source = made[0]
    assert made == [source, (CONTEXT.devices, [b"binary"]), source]
    assert len(list(tmp_path.glob("*.bin"))) == 2
