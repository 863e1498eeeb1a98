"""``perfsuite offload``, with the device and the sweep replaced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.threads import default_threads
from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.offload.chart import offload_chart, offload_finding
from perfsuite.experiments.offload.command import gpu_layers
from perfsuite.experiments.offload.splits import OffloadSweep
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from tests.command_streams import Refused, Streams
from tests.synthetic_offload import offload_point, offload_sweep
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
    monkeypatch.setattr("perfsuite.experiments.offload.sweep.measure_offload", found.measure)
    return found


def test_the_workload_is_swept(device: Device, capsys: Streams) -> None:
    """Layers, scenario, threads and rounds are those asked for, and what goes on is reported on standard error."""
    arguments = ["--gpu-layers", "0,2,all", "--scenario", "p100-g7", "--threads", "3", "--rounds", "5"]
    assert main([*SMALL, *arguments, "--opencl-platform", "POCL"]) == 0
    ((plan, layers, n_rounds),) = device.asked
    assert (plan.n_prompt, plan.n_gen, plan.n_threads) == (100, 7, 3)
    assert (layers, n_rounds) == ((0, 2, 3), 5)
    assert device.platforms == ["POCL"]
    out, err = capsys.readouterr()
    assert err == "offload: sweeping\n"
    assert out.startswith("smollm2-135m-l2-q8_0/p100-g7 on ")


@pytest.mark.parametrize(("kind", "expected"), [("cpu", False), ("gpu", True)])
def test_defaults_are_those_of_the_device(device: Device, kind: str, expected: bool) -> None:
    """None and all layers, three rounds, and flash attention where the device is no processor."""
    device.kind = kind
    assert main(SMALL) == 0
    ((plan, layers, n_rounds),) = device.asked
    assert (plan.flash_attn, plan.n_threads, layers, n_rounds) == (expected, default_threads(), (0, 3), 3)


def test_people_see_speeds_splits_and_refusals(device: Device, capsys: Streams) -> None:
    """Each number of layers has its speed and its splits; what the device refuses is named with all layers on it."""
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "0 100/s (90 to 120) 11/s (10 to 12) 3" in rows
    assert "3 300/s (290 to 310) 6/s (5 to 7) 3, 2 left out" in rows
    assert "Left out are processes that had competition" in out
    assert rows.count("1 2 CPU, OpenCL CPU 5, OpenCL 2") == 2
    assert rows.count("3 4 CPU, OpenCL x3 CPU 1, OpenCL 6") == 2
    assert "refused by the device, with 3 layers on it" in out
    assert "decode GET_ROWS embd q8_0 64 1 GPUOpenCL" in rows
    assert out.endswith("decode is fastest with 1 layer on the device (20 tokens/s)\n")


def test_people_see_what_is_not_refused_and_how_many_splits_there_are(device: Device, capsys: Streams) -> None:
    """Many splits are counted and not listed; a phase that was not run is not named."""
    point = offload_point(2, (), (5.0,), is_refused=False)
    (placed,) = point.placements
    shares = tuple(replace(placed.shares[0], backend=name, n_splits=3) for name in ("CPU", "OpenCL"))
    crowded = replace(placed, splits=("CPU", "OpenCL") * 3, shares=shares)
    device.sweep = offload_sweep(replace(point, placements=(crowded,)))
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert "With 2 layers on the device it refuses none of the operators that are left on the processor." in out
    assert "for the place of their weights or inputs: embd, norm, ffn_out\n" in out
    assert "3 splits on CPU, 3 splits on OpenCL" in out
    assert "prefill" not in out.split("processes\n")[1]


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


def test_no_rounds_are_refused(device: Device, refused: Refused) -> None:
    assert "--rounds=0: expected 1 or more" in refused([*SMALL, "--rounds", "0"])
    assert device.asked == []


def test_layers_come_once_in_their_order() -> None:
    assert gpu_layers("8, 0,all,8", 31) == (8, 0, 31)
    assert gpu_layers("31,all", 31) == (31,)


@pytest.mark.parametrize("text", ["", "-1", "32", "²"])
def test_what_is_no_number_of_layers_is_refused(text: str) -> None:
    with pytest.raises(PerfsuiteError, match="is not a number of 0 to 31"):
        gpu_layers(text, 31)


def test_a_sweep_is_drawn_by_phase() -> None:
    """Medians in the order of the layers down to the slowest process; a split more for each, two operators fewer."""
    chart = offload_chart(offload_sweep(), name="a workload", device="a device")
    prefill, decode, splits, operators = chart.panels
    assert (prefill.title, decode.title) == ("prefill", "decode")
    (line,) = prefill.lines
    assert (line.x, line.y, line.low_y) == ((0.0, 1.0, 3.0), (100.0, 200.0, 300.0), (90.0, 190.0, 290.0))
    assert decode.lines[0].y == (11.0, 20.0, 6.0)
    assert [line.label for line in splits.lines] == ["prefill", "decode"]
    assert all(line.y == (1.0, 2.0, 4.0) for line in splits.lines)
    assert all(line.y == (7.0, 5.0, 1.0) for line in operators.lines)
    assert "a workload on a device" in chart.note


def test_a_phase_that_was_not_run_has_no_panel() -> None:
    sweep = offload_sweep(offload_point(0, (), (1.0,)), offload_point(3, (), (2.0,)))
    panels = offload_chart(sweep, name="a workload", device="a device").panels
    assert [panel.title for panel in panels] == ["decode", "splits of a call", "operators on the processor"]
    assert offload_finding(offload_sweep()) == (
        "prefill is fastest with 3 layers on the device (300 tokens/s); "
        "decode is fastest with 1 layer on the device (20 tokens/s)"
    )
