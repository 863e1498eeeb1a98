"""``perfsuite forecast``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.device.machine import default_threads
from perfsuite.device.profile import Profile
from perfsuite.measure.board.protocol import BoardFacts
from perfsuite.measure.ceiling_store import best_ceilings, store_calibration
from perfsuite.measure.environment import environment_engine
from perfsuite.records.ceilings import Bandwidth, Ceilings
from tests.command_streams import Refused, Streams

from ..synthetic_calibration import calibration

ARGUMENTS = ["forecast", "--architecture", "smollm2-135m-q8_0", "--prompt", "64", "--new-tokens", "8"]
FORECAST = [*ARGUMENTS, "--json"]
N_THREADS = default_threads()


def _level(working_set_bytes: int, rate: float) -> Bandwidth:
    return Bandwidth(
        working_set_bytes=working_set_bytes, read_bytes_per_s=rate, copy_bytes_per_s=rate / 2, triad_bytes_per_s=rate
    )


CEILINGS = Ceilings(
    n_threads=N_THREADS,
    bandwidths=(_level(10**5, 9e11), _level(10**9, 2e10)),
    fp32_flops_per_s=1e11,
    int8_flops_per_s=4e11,
    f16_flops_per_s=None,
    dispatch_ns=500,
)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with nothing in it."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: str(tmp_path))
    return tmp_path


@pytest.fixture
def stored(empty_cache: Path) -> Path:
    """A cache of its own, which holds ceilings and a calibration of this machine."""
    best_ceilings(CEILINGS, host_fingerprint(), empty_cache)
    recorded = calibration(fingerprint=host_fingerprint(), n_threads=N_THREADS)
    store_calibration(recorded, environment_engine().build_id, empty_cache)
    return empty_cache


def _calibrated(arguments: list[str], capsys: Streams) -> Any:
    assert main([*FORECAST, *arguments]) == 0
    return json.loads(capsys.readouterr().out)["calibrated"]


@pytest.mark.long
def test_the_host_has_the_forecast_of_its_calibration(stored: Path, capsys: Streams) -> None:
    """Both latencies come with an interval, in JSON and in a line; ceilings alone give none."""
    found = _calibrated(["--device", "host"], capsys)
    assert found["recorded_at"] == "2025-01-02T03:04:05+00:00"
    for latency in ("ttft_s", "tpot_s"):
        assert 0 < found[latency]["lower"] < found[latency]["expected"] < found[latency]["upper"]
    longer = _calibrated(["--device", "host", "--prompt", "512"], capsys)
    assert longer["ttft_s"]["expected"] > found["ttft_s"]["expected"]
    assert main([*ARGUMENTS, "--device", "host"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "by the calibration of 2025-01-02T03:04:05+00:00: TTFT " in out
    assert "above, the ceilings alone" in out
    for path in (stored / "calibrations").iterdir():
        path.unlink()
    assert _calibrated(["--device", "host"], capsys) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tops", "1", "--bandwidth", "10"],
        ["--device", "host", "--batch", "2"],
        ["--device", "host", "--tile", "64"],
        ["--device", "host", "--draft", "smollm2-135m-q8_0"],
        ["--device", "host", "--architecture", "smollm2-135m", "--variant", "bf16-int4", "--conventions", "paper"],
    ],
    ids=["other device", "batch", "tile", "draft", "paper"],
)
def test_what_a_calibration_does_not_cover_has_none(stored: Path, capsys: Streams, arguments: list[str]) -> None:
    """Another device, several sequences, tiles, a draft and the paper's conventions are forecast by rates alone."""
    assert _calibrated(arguments, capsys) is None


def test_the_host_has_the_ceilings_that_it_has_shown(empty_cache: Path, capsys: Streams) -> None:
    """Peak, memory's read bandwidth and dispatches come from the stored probes; --dispatch-us overrides them."""
    best_ceilings(CEILINGS, host_fingerprint(), empty_cache)
    assert main([*ARGUMENTS, "--device", "host", "--memory-efficiency", "0.5", "--json"]) == 0
    hardware = json.loads(capsys.readouterr().out)["hardware"]
    assert hardware["device"] == "host"
    assert hardware["peak_flops_per_s"] == pytest.approx(1e11)
    assert hardware["bandwidth_bytes_per_s"] == pytest.approx(2e10)
    assert hardware["dispatch_s"] == pytest.approx(5e-7)
    assert (hardware["compute_efficiency_ratio"], hardware["memory_efficiency_ratio"]) == (1.0, 0.5)
    best_ceilings(CEILINGS, host_fingerprint(), empty_cache)
    assert main([*ARGUMENTS, "--device", "host", "--dispatch-us", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hardware"]["dispatch_s"] == 0.0


@pytest.mark.parametrize("kind", ["nothing", "broken", "other threads"])
def test_a_host_without_ceilings_says_how_to_get_them(empty_cache: Path, refused: Refused, kind: str) -> None:
    """Where nothing usable is stored, the message names the commands that measure it."""
    if kind != "nothing":
        n_threads = CEILINGS.n_threads + (kind == "other threads")
        best_ceilings(replace(CEILINGS, n_threads=n_threads), host_fingerprint(), empty_cache)
    if kind == "broken":
        (stored,) = (empty_cache / "ceilings").iterdir()
        stored.write_text("{")
    told = refused([*ARGUMENTS, "--device", "host"])
    assert f"--device=host: no ceilings of this machine with {CEILINGS.n_threads} threads are stored" in told
    assert "'perfsuite calibrate --device=host' or 'pytest --device=host', or give --tops and --bandwidth" in told


@pytest.fixture
def board(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> BoardFacts:
    """A board at the end of a link, by the name of rubikpi, which is asked what it is and not measured."""
    facts = BoardFacts(
        fingerprint={"soc": "QCS6490", "governor": "performance"},
        identity="0123456789abcdef",
        hostname="shelf",
        default_threads=N_THREADS,
        usable_threads=N_THREADS,
        cache_dir=Path("/nowhere"),
        engine=replace(environment_engine(), build_id="b0a4d"),
        opencl_environment={},
        load_average=0.0,
    )

    @contextmanager
    def taken(profile: Profile, command: str, options: argparse.Namespace) -> Iterator[SimpleNamespace]:
        assert (profile.name, profile.conditions.start_below_celsius, command) == ("rubikpi", None, "forecast")
        yield SimpleNamespace(board=SimpleNamespace(is_local=False, facts=lambda: facts))

    monkeypatch.setattr("perfsuite.cli.forecast.taken_device", taken)
    return facts


def test_a_board_has_what_is_kept_of_it(board: BoardFacts, empty_cache: Path, capsys: Streams) -> None:
    """Its ceilings and its calibration count, and without the second the line says which command makes one."""
    best_ceilings(CEILINGS, board.fingerprint, empty_cache, board.identity)
    assert main([*ARGUMENTS, "--device", "rubikpi"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "no calibration of rubikpi with its llama.cpp is kept" in out
    assert "'perfsuite calibrate --device=rubikpi' makes one" in out
    recorded = calibration(fingerprint=board.fingerprint, n_threads=N_THREADS)
    store_calibration(recorded, board.engine.build_id, empty_cache, board=board.identity)
    found = _calibrated(["--device", "rubikpi"], capsys)
    assert 0 < found["ttft_s"]["lower"] < found["ttft_s"]["expected"] < found["ttft_s"]["upper"]


@pytest.mark.parametrize("kept_of", [None, "another board"])
def test_a_board_without_ceilings_is_named(
    board: BoardFacts, empty_cache: Path, refused: Refused, kept_of: str | None
) -> None:
    """What is kept of this machine, or of another board of the kind, is not taken for the board's."""
    best_ceilings(CEILINGS, board.fingerprint, empty_cache, kept_of)
    told = refused([*ARGUMENTS, "--device", "rubikpi"])
    assert f"--device=rubikpi: no ceilings of this very board (01234567) with {N_THREADS} threads are stored" in told
    assert "'perfsuite calibrate --device=rubikpi' or 'pytest --device=rubikpi', or give --tops and --bandwidth" in told
    assert "('perfsuite devices show rubikpi' has the data sheet's)" in told


DEVICE = ["--tops", "50", "--bandwidth", "256", "--compute-efficiency", "0.5", "--memory-efficiency", "0.5"]
REQUEST = ["--prompt", "2048", "--new-tokens", "2000"]
LLAMA = ["--architecture", "llama-2-7b", "--variant", "bf16-int4-kv4"]


def forecast(capsys: Streams, *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["forecast", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    plain: dict[str, Any] = json.loads(out)
    return plain


_DRAFTED = ["--architecture", "smollm2-360m", "--quantization", "q8_0", "--prompt", "64", "--new-tokens", "64"]
_SPECULATED = [*_DRAFTED, "--tops", "1000", "--bandwidth", "20", "--draft", "smollm2-135m", "--draft-tokens", "4"]


@pytest.mark.parametrize(("acceptance", "speedup"), [("0", 0.40), ("0.4", 0.66), ("1", 2.0)])
def test_a_draft_that_does_not_pay_is_said(capsys: Streams, acceptance: str, speedup: float) -> None:
    """A round costs 386 + 4 x 143 MB, as 2.5 tokens without: below an acceptance of about 0.64 that is a loss."""
    found = forecast(capsys, *_SPECULATED, "--acceptance", acceptance)["speculation"]
    assert found["break_even_ratio"] == pytest.approx(0.64, abs=0.02)
    assert found["speedup_ratio"] == pytest.approx(speedup, rel=0.04)
    assert main(["forecast", *_SPECULATED, "--acceptance", acceptance]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"the draft does not pay below an acceptance of 0.66; at {float(acceptance):.2f} decode is" in told


_HYBRID = {
    "architectures": ["NemotronHForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "hybrid_override_pattern": "M-*M",
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "mamba_num_heads": 8,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 2,
    "vocab_size": 384,
    "max_position_embeddings": 512,
    "vision_config": {"depth": 2},
}


@pytest.mark.parametrize("name", ["config.json", "config"])
def test_what_synthesize_takes_is_forecast(capsys: Streams, tmp_path: Path, name: str) -> None:
    """The engine says the graph of a class that the suite does not know: one layer of four has keys and values."""
    (tmp_path / name).write_text(json.dumps(_HYBRID))
    asked = ["--architecture", str(tmp_path / name), "--quantization", "q8_0", "--prompt", "64", "--new-tokens", "4"]
    found = forecast(capsys, *asked, *DEVICE)
    assert found["left_out"] == ["vision_config: only the model of text is read"]
    assert found["prefill"]["kv_bytes"] == 64 * 2 * 64 * 2 * 2
    assert found["decode"]["state_bytes"] >= 2 * 2 * 8 * 64 * 128 * 4  # read and written by two layers, in F32
    assert found["prefill"]["ops"] > 32 * found["decode"]["ops"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch", "2"], "--batch: not for tiny-gemma3, whose graph the engine says as it is; leave it out"),
        ([], "--quantization: missing; tiny-gemma3 has no types of its own, expected one like q8_0"),
        (["--variant", "bf16-int4", "--conventions", "paper"], "--conventions=paper: tiny-gemma3 is of no family"),
    ],
)
def test_what_needs_a_known_graph_is_refused(refused: Refused, arguments: list[str], message: str) -> None:
    """Of a model whose graph only the engine knows, options that change graphs are named."""
    asked = ["forecast", "--architecture", "tiny-gemma3", "--prompt", "8", "--new-tokens", "2", *DEVICE]
    assert message in refused([*asked, *arguments])


def test_the_papers_conventions_give_the_papers_figures(capsys: Streams) -> None:
    """29.2941 TOPs and 1 GiB of cache in bf16; llama.cpp's graph is the default, whose 4-bit blocks have scales."""
    request = ["--architecture", "llama-2-7b", "--variant", "bf16-bf16", *REQUEST, *DEVICE]
    plain = forecast(capsys, *request, "--conventions", "paper")
    assert plain["prefill"]["ops"] / 1e12 == pytest.approx(29.2941, abs=1e-4)
    assert plain["prefill"]["kv_bytes"] == 2**30
    assert plain["decode"]["first"]["ops"] / 1e9 == pytest.approx(14.41, abs=1e-2)
    plain = forecast(capsys, *LLAMA, *REQUEST, *DEVICE)
    assert plain["conventions"] == "engine"
    assert plain["prefill"]["kv_bytes"] == 2048 * 32 * 2 * 4096 // 32 * 18


def test_dispatches_and_power_count(capsys: Streams) -> None:
    """A dispatch of 10 microseconds lengthens both parts by as many as there are; energy is power times all time."""
    plain = forecast(capsys, *LLAMA, *REQUEST, *DEVICE, "--dispatch-us", "10", "--power-w", "30")
    prefill, decode = plain["prefill"], plain["decode"]
    assert prefill["dispatch_s"] == pytest.approx(prefill["dispatches"] * 1e-5)
    assert prefill["compute_s"] == pytest.approx(prefill["ops"] / 25e12 + prefill["dispatch_s"])
    assert decode["dispatch_share"] == pytest.approx(decode["dispatches"] * 1e-5 / decode["tpot_s"])
    assert plain["energy_j"] == pytest.approx(30 * (prefill["ttft_s"] + 2000 * decode["tpot_s"]))


@pytest.mark.parametrize(
    ("option", "figure"),
    [
        (["--chunk", "128"], ("prefill", "dispatches")),
        (["--batch", "4"], ("decode", "bytes")),
        (["--lora-rank", "64"], ("prefill", "ops")),
        (["--kv-type", "q8_0"], ("prefill", "kv_bytes")),
        (["--quantization", "q8_0"], ("decode", "bytes")),
        (["--tile", "4096"], ("prefill", "ops")),
        (["--draft", "llama-2-7b", "--acceptance", "1", "--draft-tokens", "2"], ("prefill", "ops")),
    ],
)
@pytest.mark.parametrize("conventions", ["engine", "paper"])
def test_every_optimisation_changes_what_it_should(
    capsys: Streams, conventions: str, option: list[str], figure: tuple[str, str]
) -> None:
    """Each option reaches the figure that it is about, under either convention."""
    request = [*LLAMA, *REQUEST, *DEVICE, "--conventions", conventions]
    before, after = forecast(capsys, *request), forecast(capsys, *request, *option)
    phase, name = figure
    assert after[phase][name] > before[phase][name]


BAD = {
    "merged": (["--lora-merged"], "--lora-merged: there is no adapter to merge"),
    "kv": (["--kv-type", "int3"], "--kv-type=int3: unknown to the engine; accepted are"),
    "acceptance": (["--draft", "llama-2-7b", "--acceptance", "2"], "--acceptance=2: expected a share from 0 to 1"),
    "no-bandwidth": (["--bandwidth", "0"], "--bandwidth=0: expected"),
    "no-draft": (["--acceptance", "0.5"], "--acceptance: there is no draft; expected --draft"),
    "vocabulary": (["--draft", "smollm2-135m"], "--draft=smollm2-135m: has a vocabulary of 49152, expected the target"),
    "device-and-tops": (["--device", "host"], "--device=host with --tops and --bandwidth: expected one or the other"),
    "experts": (
        ["--architecture", "qwen1.5-moe-a2.7b", "--conventions", "paper"],
        "moe has 60 experts, expected none under the paper's",
    ),
}


@pytest.mark.parametrize(("changes", "told"), [pytest.param(*case, id=name) for name, case in BAD.items()])
def test_bad_input_is_one_line(refused: Refused, changes: list[str], told: str) -> None:
    """A value that means nothing is refused with its option or field, itself, and what is accepted."""
    assert told in refused(["forecast", *LLAMA, *REQUEST, *DEVICE, *changes])
