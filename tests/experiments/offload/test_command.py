"""``perfsuite offload``, with the device and the sweep replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.experiments.offload.sweep import OffloadSweep
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from tests.command_streams import Streams
from tests.synthetic_offload import offload_sweep
from tests.synthetic_opencl_backend import opencl_backend

SMALL = ["offload", "--model", "smollm2-135m-l2-q8_0"]


@dataclass
class Device:
    folder: Path
    sweep: OffloadSweep
    kind: str = "cpu"
    platforms: list[str | None] = field(default_factory=list)
    asked: list[tuple[LlamaPlan, tuple[int, ...], int]] = field(default_factory=list)

    def set_up(self, _: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
        self.platforms.append(platform)
        return opencl_backend(self.folder, self.kind)

    def measure(
        self, plan: LlamaPlan, *_: object, layers: Sequence[int], n_rounds: int, announce: Callable[[str], None]
    ) -> OffloadSweep:
        self.asked.append((plan, tuple(layers), n_rounds))
        announce("sweeping")
        return self.sweep


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> Device:
    found = Device(folder=tmp_path, sweep=offload_sweep())
    monkeypatch.setattr("perfsuite.measure.opencl_backend.set_up_opencl", found.set_up)
    monkeypatch.setattr("perfsuite.experiments.offload.command.measure_offload", found.measure)
    return found


def test_the_workload_is_swept(device: Device, capsys: Streams) -> None:
    """Layers, scenario, threads and rounds are those asked for, and what goes on is reported on standard error."""
    arguments = ["--gpu-layers", "0,2,all,2", "--scenario", "p100-g7", "--threads", "3", "--rounds", "5"]
    assert main([*SMALL, *arguments, "--opencl-platform", "POCL"]) == 0
    ((plan, layers, n_rounds),) = device.asked
    assert (plan.n_prompt, plan.n_gen, plan.n_threads) == (100, 7, 3)
    assert (layers, n_rounds) == ((0, 2, 3), 5)
    assert device.platforms == ["POCL"]
    out, err = capsys.readouterr()
    assert err == "offload: sweeping\n"
    assert out.startswith("smollm2-135m-l2-q8_0/p100-g7 on ")
    assert "refused by the device, with 3 layers on it" in out
    assert out.endswith("decode is fastest with 1 layer on the device (20 tokens/s)\n")


def test_json_has_all_that_was_seen(device: Device, capsys: Streams) -> None:
    assert main([*SMALL, "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["workload"], plain["n_gpu_layers_all"]) == ("smollm2-135m-l2-q8_0/p16-g8", 3)
    assert (plain["engine"], plain["flash_attn"]) == ("llama 1, ggml 1", False)
    point = plain["points"][1]
    assert (point["n_gpu_layers"], point["n_disturbed"]) == (3, 2)
    speed = {f"{name}_tokens_per_s": value for name, value in (("median", 6.0), ("least", 5.0), ("most", 7.0))}
    assert point["speeds"][1] == {"phase": "decode", **speed, "samples_tokens_per_s": [6.0, 7.0, 5.0]}
    placed = point["placements"][1]
    assert placed["splits"] == ["CPU", "OpenCL", "OpenCL", "OpenCL"]
    assert placed["backends"][1] == {"backend": "OpenCL", "n_splits": 3, "n_operators": 6}
    kept = {"role": "embd", "op": "GET_ROWS", "source_type": "q8_0", "ne": [64, 1, 1, 1], "n_nodes": 1}
    assert placed["on_processor"] == [{**kept, "refused_by": ["GPUOpenCL"]}]


def test_a_picture_is_drawn(device: Device, capsys: Streams, tmp_path: Path) -> None:
    assert main([*SMALL, "--plot", str(tmp_path / "sweep.svg")]) == 0
    assert "<svg" in (tmp_path / "sweep.svg").read_text()
    assert "sweep.svg: drawn" in capsys.readouterr().err
