"""``perfsuite kernels``, with the device and the run replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.device.profile import Profile
from perfsuite.device.threads import default_threads
from perfsuite.errors import EngineError, MeasurementError
from perfsuite.experiments.kernels.command import view_answer
from perfsuite.experiments.kernels.traced_view import TracedView
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from tests.command_streams import Refused, Streams, plain_of, printed
from tests.synthetic_opencl_backend import opencl_backend
from tests.synthetic_view import growth, horizon, kernel, phase_view, traced_view, workload

TWO_KERNELS = (kernel("kernel_mul_mat", 1_200_000, share_ratio=0.6), kernel("kernel_add", 800_000, share_ratio=0.4))
PREFILL = phase_view(Phase.PREFILL, TWO_KERNELS, 0.125)


def shown(traced: TracedView, capsys: Streams, folder: Path, *, n_top: int = 8, kind: str = "cpu") -> str:
    """Return what is printed."""
    return printed(view_answer(traced, workload(), opencl_backend(folder, kind), n_top=n_top), capsys)


def words(out: str, begin: str) -> list[str]:
    """Return the words of the one line that begins so."""
    (found,) = [each for each in out.splitlines() if each.startswith(begin)]
    return found.split()


def test_a_phase_has_its_time_and_its_kernels(capsys: Streams, tmp_path: Path) -> None:
    """Duration, what kernels account for, idle share, and each kernel's launches, times, share and operators."""
    out = shown(traced_view(PREFILL), capsys, tmp_path)
    assert "prefill: 2.00 ms; kernels account for 87.5%; the device is idle for 12.5%\n" in out
    assert words(out, "kernel_mul_mat") == [
        "kernel_mul_mat",
        "4",
        "1.20",
        "ms",
        "60.0%",
        "300",
        "µs",
        "300",
        "µs",
        "mul_mat",
    ]
    assert words(out, "kernel_add")[-1] == "add"
    assert "more" not in out


def test_kernels_beyond_the_top_are_counted(capsys: Streams, tmp_path: Path) -> None:
    """What is not in the table is told with its share."""
    out = shown(traced_view(PREFILL), capsys, tmp_path, n_top=1)
    assert "kernel_add" not in out
    assert "and 1 kernel with 40.0% of the time" in out


def test_a_decode_tells_its_idle_share_over_the_generation(capsys: Streams, tmp_path: Path) -> None:
    """At steps that are further and further apart, as far as the generation went, counted from 1."""
    ratios = [0.5, 0.0, 0.0, 0.25, *[0.0] * 11, 0.125, 0.0]
    out = shown(traced_view(phase_view(Phase.DECODE, TWO_KERNELS, *ratios)), capsys, tmp_path)
    assert (
        "decode: 2.00 ms, the median of 17; kernels account for 87.5%; "
        "the device is idle for 50.0% at step 1, 25.0% at step 4, 12.5% at step 16\n" in out
    )


def test_a_kernel_of_many_operators_names_some(capsys: Streams, tmp_path: Path) -> None:
    """Three are named, and more are counted."""
    view = phase_view(Phase.PREFILL, TWO_KERNELS, 0.125)
    view.roles["kernel_mul_mat"] = tuple("abcd")  # type: ignore[index]
    assert words(shown(traced_view(view), capsys, tmp_path), "kernel_mul_mat")[-5:] == ["a,", "b,", "c,", "1", "more"]


def test_what_grows_is_told_with_its_slope(capsys: Streams, tmp_path: Path) -> None:
    """A kernel whose interval holds 0 is left out."""
    found = (growth("kernel_soft_max", 50.0), growth("kernel_add", 0.5))
    out = shown(traced_view(PREFILL, growth=found), capsys, tmp_path)
    line = words(out, "kernel_soft_max")
    assert line == ["kernel_soft_max", "+50.0", "ns", "+49.0", "ns", "+51.0", "ns", "1.50", "times", "0.75"]
    assert not any(each.startswith("kernel_add") and "times" in each for each in out.splitlines())


def test_where_nothing_grows_it_says_so(capsys: Streams, tmp_path: Path) -> None:
    """Known kernels that stay as they are have one line; an unknown growth has none."""
    still = "No kernel's time grows with the decode step."
    assert still in shown(traced_view(PREFILL, growth=(growth("kernel_add", 0.5),)), capsys, tmp_path)
    assert still not in shown(traced_view(PREFILL), capsys, tmp_path)


def test_forecasts_have_their_errors(capsys: Streams, tmp_path: Path) -> None:
    """A horizon that no outcome reached is left out; without any there is no table."""
    out = shown(traced_view(PREFILL, forecast_errors=(horizon(1, 30), horizon(64, 0))), capsys, tmp_path)
    assert words(out, "1 ") == ["1", "30", "1.5", "%", "6.5", "%", "90%"]
    assert not any(line.startswith("64") for line in out.splitlines())
    without = shown(traced_view(PREFILL, forecast_errors=(horizon(1, 0),)), capsys, tmp_path)
    assert "forecast" not in without


def test_the_device_and_the_layer_are_told(capsys: Streams, tmp_path: Path) -> None:
    """On a processor the compatibility layer is told, on another device there is none; clocks have their error."""
    layer = "takes through the suite's compatibility layer"
    out = shown(traced_view(PREFILL), capsys, tmp_path)
    assert out.startswith(f"{workload().prefix} on ")
    assert layer in out
    assert "Times on the host's clock are right to" in out
    assert "unknown error" not in out
    assert layer not in shown(traced_view(PREFILL), capsys, tmp_path, kind="gpu")


def test_what_cannot_be_trusted_is_told(capsys: Streams, tmp_path: Path) -> None:
    """Problems of the trace and competition have a line each."""
    traced = traced_view(PREFILL, problems=("the OpenCL layer lost 2 commands",), complaint="others took 40 %")
    out = shown(traced, capsys, tmp_path)
    assert out.endswith("Not to be trusted: the OpenCL layer lost 2 commands\nNot to be trusted: others took 40 %\n")
    assert "Not to be trusted" not in shown(traced_view(PREFILL), capsys, tmp_path)


MANY_KERNELS = tuple(kernel(f"kernel_{number}", 1000 * (20 - number)) for number in range(12))
DECODE = phase_view(Phase.DECODE, MANY_KERNELS, 0.5, 0.25)


def read(traced: TracedView, folder: Path) -> Any:
    """Return what programs read."""
    return plain_of(view_answer(traced, workload(), opencl_backend(folder), n_top=1))


def test_all_kernels_of_a_phase_are_there(tmp_path: Path) -> None:
    """However many they are, in their order, with their operators and what they waited for apart."""
    (phase,) = read(traced_view(DECODE), tmp_path)["phases"]
    assert (phase["phase"], phase["n_occurrences"], phase["duration_ns"]) == ("decode", 2, 2_000_000)
    assert (phase["operators_ratio"], phase["idle_ratio"]) == (0.875, [0.5, 0.25])
    assert [each["name"] for each in phase["kernels"]] == [each.name for each in MANY_KERNELS]
    first = phase["kernels"][0]
    assert first["operators"] == ["0"]
    assert first["execution"] == {"total_ns": 20_000, "median_ns": 5000, "p95_ns": 5000}
    assert set(first) >= {"n", "n_left_out", "share_ratio", "queueing", "dispatch"}


def test_growth_and_forecasts_are_there(tmp_path: Path) -> None:
    """What is derived from the fit is told beside it; what has no outcome is null."""
    traced = traced_view(
        DECODE, growth=(growth("kernel_1", 50.0), growth("kernel_2", 0.5)), forecast_errors=(horizon(64, 0),)
    )
    plain = read(traced, tmp_path)
    assert [(each["name"], each["grows"]) for each in plain["growth"]] == [("kernel_1", True), ("kernel_2", False)]
    assert plain["growth"][0]["growth_ratio"] == 1.5
    assert len(plain["growth"][0]["step_totals_ns"]) == 11
    assert plain["forecast_errors"][0]["median_percent"] is None


def test_the_run_says_where_it_was(tmp_path: Path) -> None:
    """Workload, engine, device with its compatibility layer, clocks, and what cannot be trusted."""
    plain = read(traced_view(DECODE, problems=("a problem",), complaint="a complaint"), tmp_path)
    assert (plain["workload"], plain["engine"]) == (workload().prefix, "llama 1, ggml 1 abc")
    assert plain["device"] == opencl_backend(tmp_path).fingerprint
    assert plain["problems"] == ["a problem", "a complaint"]
    (clock,) = plain["clocks"]
    assert isinstance(clock["basis"], str)
    assert clock["error_ns"] >= 0
    assert read(traced_view(DECODE), tmp_path)["problems"] == []


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
