"""Setting the OpenCL backend up, with the worker and the layers replaced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import EngineError, NativeBuildError, OpenClError
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClLayers
from perfsuite.measure.opencl_setup import set_up_opencl
from perfsuite.measure.plan import DevicesPlan

from ..synthetic_opencl_backend import opencl_device, plain_engine, written

HOME = "perfsuite.measure.opencl_setup"
SETTINGS = {"OCL_ICD_VENDORS": "/vendors"}


@pytest.fixture
def own_engine(tmp_path: Path) -> Engine:
    """Return an engine for which the backend was made."""
    written(tmp_path / "opencl-backend-abc" / "plain" / "libggml-opencl.so")
    return plain_engine(tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Replace what looks for devices and builds layers; return what they were asked."""
    found: list[tuple[Any, ...]] = []
    device = {**opencl_device("gpu").to_plain()}

    def run(plan: DevicesPlan, *, extra_environment: Mapping[str, str]) -> dict[str, Any]:
        found.append((plan, dict(extra_environment)))
        return {"chosen": device, "devices": [opencl_device().to_plain(), device]}

    def layers(cache_dir: Path) -> OpenClLayers:
        found.append((cache_dir,))
        return OpenClLayers(tracing=written(tmp_path / "layer.so"), compatibility=written(tmp_path / "compat.so"))

    monkeypatch.setattr("perfsuite.measure.launch.run_worker", run)
    monkeypatch.setattr("perfsuite.measure.launch.environment_opencl_vendors", lambda: "/own")
    monkeypatch.setattr(f"{HOME}.opencl_environment", lambda cache_dir, inherited: {**SETTINGS, "FROM": inherited})
    monkeypatch.setattr(f"{HOME}.find_opencl_layers", layers)
    return found


def test_the_device_is_the_one_that_a_process_has_chosen(
    own_engine: Engine, asked: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """A process with the drivers of the environment chooses by the platform's name, and sees what the engine will."""
    backend = set_up_opencl(own_engine, "plat", tmp_path)
    assert asked == [(DevicesPlan(platform="plat"), {**SETTINGS, "FROM": "/own"}), (tmp_path,)]
    assert backend.device == opencl_device("gpu")
    assert backend.tracing_layer == tmp_path / "layer.so"
    assert backend.library == tmp_path / "opencl-backend-abc" / "plain" / "libggml-opencl.so"
    assert backend.settings.items() >= {**SETTINGS, "FROM": "/own"}.items()


def test_a_missing_backend_starts_no_process(asked: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """Without a backend nobody looks for devices, and no layer is built."""
    with pytest.raises(EngineError, match="--backend=opencl: neither"):
        set_up_opencl(plain_engine(tmp_path), None, tmp_path)
    assert asked == []


@pytest.mark.parametrize(
    ("replaced", "error"),
    [
        ("perfsuite.measure.launch.run_worker", OpenClError("no platform like 'plat'")),
        (f"{HOME}.find_opencl_layers", NativeBuildError("no headers")),
    ],
)
@pytest.mark.usefixtures("asked")
def test_what_fails_is_told_as_it_is(
    own_engine: Engine, replaced: str, error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A platform that is not there and a layer that does not build keep their own words."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(replaced, fail)
    with pytest.raises(type(error), match=str(error)):
        set_up_opencl(own_engine, "plat", tmp_path)
