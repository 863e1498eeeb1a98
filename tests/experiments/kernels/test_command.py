"""``perfsuite kernels``, with the device and the run replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.profile import Profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import EngineError, MeasurementError
from perfsuite.experiments.kernels.traced_view import TracedView
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from tests.command_streams import Refused, Streams
from tests.synthetic_opencl_backend import opencl_backend
from tests.synthetic_view import kernel, phase_view, traced_view, workload

#: More kernels than are shown unless asked for.
KERNELS = tuple(kernel(f"kernel_{number}", 1000, share_ratio=0.1) for number in range(10))
SMALL = ["kernels", "--model", "smollm2-135m-l2-q8_0"]


@dataclass
class Device:
    """Answers runs, and notes what was asked."""

    folder: Path
    kind: str = "cpu"
    error: Exception | None = None
    platforms: list[str | None] = field(default_factory=list)
    plans: list[LlamaPlan] = field(default_factory=list)

    def set_up(self, _: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
        """Return the backend."""
        assert cache_dir == self.folder / "cache"
        self.platforms.append(platform)
        return opencl_backend(self.folder, self.kind)

    def view(
        self, plan: LlamaPlan, _: OpenClBackend, __: Profile, *, cache_dir: Path, announce: Callable[[str], None]
    ) -> TracedView:
        """Return the run."""
        self.plans.append(plan)
        announce("learning")
        if self.error:
            raise self.error
        return traced_view(phase_view(Phase.PREFILL, KERNELS, 0.5))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Device:
    """Replace the device, the run and the caches."""
    found = Device(folder=tmp_path)
    monkeypatch.setattr("perfsuite.measure.opencl_setup.set_up_opencl", found.set_up)
    monkeypatch.setattr("perfsuite.experiments.kernels.traced_view.traced_view", found.view)
    monkeypatch.setattr("perfsuite.cli.opencl_run.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return found


def test_the_workload_runs_on_the_device(device: Device, capsys: Streams) -> None:
    """All layers are on the device, and what goes on is told on standard error."""
    assert main([*SMALL, "--scenario", "p100-g7", "--threads", "3", "--opencl-platform", "POCL"]) == 0
    (plan,) = device.plans
    assert (plan.n_prompt, plan.n_gen, plan.n_threads, plan.n_gpu_layers) == (100, 7, 3, 999)
    assert plan.backend_library == str(device.folder / "libggml-opencl.so")
    assert device.platforms == ["POCL"]
    out, err = capsys.readouterr()
    assert err == "kernels: learning\n"
    assert "smollm2-135m-l2-q8_0/p100-g7 on " in out


def test_defaults_are_those_of_a_run(device: Device) -> None:
    """Without options it is the short scenario on the usual threads."""
    assert main(SMALL) == 0
    assert (device.plans[0].n_prompt, device.plans[0].n_gen) == (64, 24)
    assert device.plans[0].n_threads == default_threads()


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        ("cpu", [], False),
        ("cpu", ["--flash-attn", "on"], True),
        ("gpu", [], True),
        ("gpu", ["--flash-attn", "off"], False),
    ],
)
def test_flash_attention_follows_the_device(kind: str, arguments: list[str], expected: bool, device: Device) -> None:
    """Unless the option says so, it is off where the device is a processor."""
    device.kind = kind
    assert main([*SMALL, *arguments]) == 0
    assert device.plans[0].flash_attn is expected


def test_the_top_is_shown_and_json_has_all(device: Device, capsys: Streams) -> None:
    """Eight kernels unless another number is asked for; JSON leaves out none."""
    main(SMALL)
    assert "and 2 kernels with 20.0% of the time" in capsys.readouterr().out
    main([*SMALL, "--top", "9"])
    assert "and 1 kernel with 10.0% of the time" in capsys.readouterr().out
    main([*SMALL, "--json", "--top", "1"])
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["phases"][0]["kernels"]) == len(KERNELS)
    assert plain["workload"] == workload().prefix


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top", "0"], "--top=0: expected 1 or more"),
        (["--threads", "0"], "--threads=0: expected 1 or more"),
        (["--device", "nokia3310"], "--device=nokia3310: no such device"),
        (["--scenario", "lunch"], "scenario 'lunch' is unknown"),
        (["--model", "smollm2-135m"], "lacks a quantisation"),
    ],
)
def test_what_cannot_be_run_is_one_line(arguments: list[str], message: str, device: Device, refused: Refused) -> None:
    """Mistakes are told before any process is started."""
    assert message in refused([*SMALL, *arguments])
    assert device.platforms == device.plans == []


def test_a_run_that_fails_is_one_line(device: Device, monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """A missing backend and a failed run keep their own words."""
    device.error = MeasurementError("2 logs of one process")
    assert main(SMALL) == 2
    assert capsys.readouterr().err.endswith("perfsuite: error: 2 logs of one process\n")

    def missing(*_: object) -> None:
        raise EngineError("--backend=opencl: neither")

    monkeypatch.setattr("perfsuite.measure.opencl_setup.set_up_opencl", missing)
    assert main(SMALL) == 2
    assert capsys.readouterr().err == "perfsuite: error: --backend=opencl: neither\n"
