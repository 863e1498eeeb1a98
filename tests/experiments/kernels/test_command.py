"""``perfsuite kernels``, with the device and the run replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.machine import default_threads
from perfsuite.experiments.kernels.command import view_answer
from perfsuite.experiments.kernels.traced_view import TracedView
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from tests.command_streams import Streams, plain_of, printed
from tests.synthetic_opencl_backend import opencl_backend
from tests.synthetic_view import growth, horizon, kernel, phase_view, traced_view, workload

TWO_KERNELS = (kernel("kernel_mul_mat", 1_200_000, share_ratio=0.6), kernel("kernel_add", 800_000, share_ratio=0.4))
PREFILL = phase_view(Phase.PREFILL, TWO_KERNELS, 0.125)


def shown(traced: TracedView, capsys: Streams, folder: Path, *, n_top: int = 8, kind: str = "cpu") -> str:
    out = printed(view_answer(traced, workload(), opencl_backend(folder, kind), n_top=n_top), capsys)
    return "".join(f"{' '.join(line.split())}\n" for line in out.splitlines())


def test_a_phase_has_its_time_and_its_top_kernels(capsys: Streams, tmp_path: Path) -> None:
    """Launches, times, share and operators of each kernel; what is beyond the top is counted."""
    out = shown(traced_view(PREFILL), capsys, tmp_path)
    assert "prefill: 2.00 ms; kernels account for 87.5%; the device is idle for 12.5%\n" in out
    assert "\nkernel_mul_mat 4 1.20 ms 60.0% 300 µs 300 µs - mul_mat\n" in out
    assert " add\n" in out
    assert "more" not in out
    view = phase_view(Phase.PREFILL, TWO_KERNELS, 0.125)
    view.roles["kernel_mul_mat"] = tuple("abcd")  # type: ignore[index]
    out = shown(traced_view(view), capsys, tmp_path, n_top=1)
    assert "kernel_add" not in out
    assert "and 1 kernel with 40.0% of the time" in out
    assert " a, b, c, 1 more\n" in out


def test_growth_and_forecasts_have_their_tables(capsys: Streams, tmp_path: Path) -> None:
    """A kernel whose interval holds 0 is left out, and so is a horizon that no outcome reached."""
    found, still = (
        (growth("kernel_soft_max", 50.0), growth("kernel_add", 0.5)),
        "No kernel's time grows with the decode",
    )
    out = shown(traced_view(PREFILL, growth=found, forecast_errors=(horizon(1, 30), horizon(64, 0))), capsys, tmp_path)
    assert "\nkernel_soft_max +50.0 ns +49.0 ns +51.0 ns 1.50 times 0.75\n" in out
    assert not any(each.startswith("kernel_add") and "times" in each for each in out.splitlines())
    assert "\n1 30 1.5 % 6.5 % 90%\n" in out
    assert "\n64" not in out
    assert still in shown(traced_view(PREFILL, growth=found[1:]), capsys, tmp_path)
    out = shown(traced_view(PREFILL, forecast_errors=(horizon(1, 0),)), capsys, tmp_path)
    assert still not in out
    assert "forecast" not in out


def test_the_device_and_what_is_not_to_be_trusted_are_told(capsys: Streams, tmp_path: Path) -> None:
    """A processor has a compatibility layer, clocks have their error; problems and competition have a line each."""
    layer, doubt = "takes through the suite's compatibility layer", "Not to be trusted: "
    out = shown(traced_view(PREFILL), capsys, tmp_path)
    assert out.startswith(f"{workload().prefix} on ")
    assert layer in out
    assert "Times on the host's clock are right to" in out
    assert "unknown error" not in out
    assert doubt not in out
    assert layer not in shown(traced_view(PREFILL), capsys, tmp_path, kind="gpu")
    traced = traced_view(PREFILL, problems=("the OpenCL layer lost 2 commands",), complaint="others took 40 %")
    told = shown(traced, capsys, tmp_path)
    assert told.endswith(f"{doubt}the OpenCL layer lost 2 commands\n{doubt}others took 40 %\n")


def test_programs_read_what_is_derived(tmp_path: Path) -> None:
    """Growth has its fit beside it, what has no outcome is null, and whatever casts doubt is a problem."""
    traced = traced_view(
        phase_view(Phase.DECODE, TWO_KERNELS, 0.5, 0.25),
        growth=(growth("kernel_1", 50.0), growth("kernel_2", 0.5)),
        forecast_errors=(horizon(64, 0),),
        problems=("a problem",),
        complaint="a complaint",
    )
    plain = plain_of(view_answer(traced, workload(), opencl_backend(tmp_path), n_top=1))
    assert plain["phases"][0]["idle_ratio"] == [0.5, 0.25]
    assert [(each["name"], each["grows"]) for each in plain["growth"]] == [("kernel_1", True), ("kernel_2", False)]
    assert plain["forecast_errors"][0]["median_percent"] is None
    assert plain["problems"] == ["a problem", "a complaint"]


#: More kernels than are shown unless asked for.
KERNELS = tuple(kernel(f"kernel_{number}", 1000, share_ratio=0.1) for number in range(10))
SMALL = ["kernels", "--model", "smollm2-135m-l2-q8_0"]


@dataclass
class Device:
    folder: Path
    kind: str = "cpu"
    platforms: list[str | None] = field(default_factory=list)
    plans: list[LlamaPlan] = field(default_factory=list)

    def set_up(self, _: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
        assert cache_dir == self.folder / "cache"
        self.platforms.append(platform)
        return opencl_backend(self.folder, self.kind)

    def view(self, plan: LlamaPlan, *_: object, announce: Callable[[str], None], **__: object) -> TracedView:
        self.plans.append(plan)
        announce("learning")
        return traced_view(phase_view(Phase.PREFILL, KERNELS, 0.5))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> Device:
    found = Device(folder=tmp_path)
    monkeypatch.setattr("perfsuite.measure.opencl_backend.set_up_opencl", found.set_up)
    monkeypatch.setattr("perfsuite.experiments.kernels.traced_view.traced_view", found.view)
    return found


def test_the_workload_runs_on_the_device(device: Device, capsys: Streams) -> None:
    assert main([*SMALL, "--scenario", "p100-g7", "--threads", "3", "--opencl-platform", "POCL"]) == 0
    (plan,) = device.plans
    assert (plan.n_prompt, plan.n_gen, plan.n_threads, plan.n_gpu_layers) == (100, 7, 3, 999)
    assert plan.backend_library == str(device.folder / "libggml-opencl.so")
    assert device.platforms == ["POCL"]
    out, err = capsys.readouterr()
    assert err == "kernels: learning\n"
    assert "smollm2-135m-l2-q8_0/p100-g7 on " in out


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        ("cpu", [], False),
        ("cpu", ["--flash-attn", "on"], True),
        ("gpu", [], True),
    ],
)
def test_flash_attention_follows_the_device(kind: str, arguments: list[str], expected: bool, device: Device) -> None:
    """Unless the option says so, it is off on a processor; without others it is the short scenario as usual."""
    device.kind = kind
    assert main([*SMALL, *arguments]) == 0
    plan = device.plans[0]
    assert (plan.flash_attn, plan.n_prompt, plan.n_gen, plan.n_threads) == (expected, 64, 24, default_threads())


def test_the_top_is_shown_and_json_has_all(device: Device, capsys: Streams) -> None:
    for top, told in (([], "2 kernels with 20.0%"), (["--top", "9"], "1 kernel with 10.0%")):
        main([*SMALL, *top])
        assert f"and {told} of the time" in capsys.readouterr().out
    main([*SMALL, "--json", "--top", "1"])
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["phases"][0]["kernels"]) == len(KERNELS)
    assert plain["workload"] == workload().prefix
