"""``perfsuite live``, with its runs replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.experiments.overhead.measurement import LiveCostRun, Overhead
from perfsuite.measure.live import Delivery
from perfsuite.measure.live_server import open_server
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from perfsuite.records.live import LiveEnd, LiveLoss, LiveRecord, LiveToken, to_line
from perfsuite.verdict.significance import PairedRatio
from tests.command_streams import Refused, Streams

N_TOKENS = 12


def records(*, is_complete: bool = True) -> list[LiveRecord]:
    """Return the records of a short run whose steps grow by 0.1 ms."""
    tokens = [
        LiveToken(
            repetition=0, step=step, token=64 + step, latency_ns=10**7 + 10**5 * step, end_ns=step, tokens_per_s=100.0
        )
        for step in range(N_TOKENS)
    ]
    end = LiveEnd(end_ns=99, is_complete=is_complete, n_phases=0, n_tokens=N_TOKENS, n_kernels=0)
    return [*tokens, LiveLoss(where="subscriber", n_records=3), LiveLoss(where="opencl", n_records=None), end]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[LlamaPlan]:
    """Replace runs; return the plans that they were given."""
    given: list[LlamaPlan] = []

    def run(plan: LlamaPlan, consume: Callable[[Delivery], None], *_: object, **__: object) -> dict[str, Any]:
        given.append(plan)
        for record in records():
            consume(Delivery(record=record, arrival_ns=0, delay_ns=250_000 if isinstance(record, LiveToken) else None))
        return {}

    def cost(plan: LlamaPlan, *, n_pairs: int, announce: Callable[[int], None], **_: object) -> LiveCostRun:
        given.append(plan)
        announce(0)
        ratio = PairedRatio(median_ratio=1.0025, lower_ratio=0.999, upper_ratio=1.006, n_pairs=n_pairs)
        return LiveCostRun(overhead=Overhead(ratios={Phase.DECODE: ratio}, n_discarded=1), n_tokens=480)

    monkeypatch.setattr("perfsuite.cli.live.run_live", run)
    monkeypatch.setattr("perfsuite.cli.live.measure_live_cost", cost)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf"
    )
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return given


def test_each_token_is_a_line(plans: list[LlamaPlan], capsys: Streams) -> None:
    """Latency, rate and, from the eighth on, forecasts; losses are reported; delays and errors come last."""
    assert main(["live", "--scenario", "p8-g12", "--threads", "3", "--repetitions", "2"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["step", "0", "10.0", "ms", "100.0", "tokens/s"]
    assert "+1 10.8 ms (10.8 ms to 10.8 ms)  +8 11.5 ms" in lines[7]
    assert lines[N_TOKENS : N_TOKENS + 2] == [
        "lost: 3 records (subscriber)",
        "lost: an unknown number of records (opencl)",
    ]
    assert "250 µs" in out
    assert "0.0 %" in out
    (plan,) = plans
    assert (plan.n_prompt, plan.n_gen, plan.n_threads, plan.n_repetitions) == (8, 12, 3, 2)


@pytest.mark.usefixtures("plans")
def test_json_is_the_stream_with_forecasts_and_a_summary(capsys: Streams) -> None:
    """Every record is a line as the socket has it, forecasts follow their token, the summary ends it."""
    assert main(["live", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert kinds == ["token"] * 7 + ["token", "forecast", "forecast"] * 5 + ["loss", "loss", "end", "summary"]
    summary = lines[-1]
    assert summary["delays"] == [{"name": "token", "n_records": N_TOKENS, "median_ns": 250000, "p95_ns": 250000}]
    assert [each["n_outcomes"] for each in summary["forecast_errors"]] == [4, 0, 0]
    assert (summary["n_tokens"], summary["n_lost"]) == (N_TOKENS, 3)


def test_a_run_can_be_attached_to(tmp_path: Path, capsys: Streams) -> None:
    """With --socket the records of a run that was started elsewhere are shown, and that it broke off."""
    path = tmp_path / "own" / "live.sock"
    with open_server(path) as server:
        server.publish([to_line(record) for record in records(is_complete=False)])
        import threading

        def serve() -> None:
            while not server.has_subscribers:
                server.wait(30)
            server.flush(30)

        thread = threading.Thread(target=serve)
        thread.start()
        assert main(["live", "--socket", str(path), "--limit", "60"]) == 0
        thread.join()
    out = capsys.readouterr().out
    assert out.count("tokens/s") == N_TOKENS
    assert "the run broke off" in out


def test_a_socket_that_is_not_there_is_waited_for(tmp_path: Path, capsys: Streams) -> None:
    """That it waits is reported once, and at the limit that nobody came."""
    path = tmp_path / "live.sock"
    assert main(["live", "--socket", str(path), "--limit", "0.05"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"live: {path}: nobody offers records there yet; waiting, 0.05 s at most",
        f"perfsuite: error: {path}: nobody offers records there (No such file or directory)",
    ]


def test_the_cost_is_a_table(plans: list[LlamaPlan], capsys: Streams) -> None:
    """The ratio of each phase with its bounds, how many pairs, and what was left out."""
    assert main(["live", "--cost", "--pairs", "7", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["costs"] == [
        {"phase": "decode", "median_ratio": 1.0025, "lower_ratio": 0.999, "upper_ratio": 1.006, "n_pairs": 7}
    ]
    assert main(["live", "--cost"]) == 0
    out, err = capsys.readouterr()
    assert "decode  +0.25 %  -0.10 % to +0.60 %  20" in " ".join(out.split("\n")).replace("   ", "  ")
    assert "480 tokens delivered, 1 pair left out" in out
    assert err == "live: 0 pairs\n"
    assert len(plans) == 2


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "9"], "--pairs=9: says nothing without --cost"),
        (
            ["--socket", "/x/y", "--device", "rubikpi"],
            "--socket=/x/y: a socket of this machine, and rubikpi is reached",
        ),
        (["--socket", "/x/y", "--cost"], "--socket=/x/y: --cost starts runs of its own"),
        (["--socket", __file__], "test_live.py: cannot be subscribed to (it is not a socket)"),
    ],
)
def test_what_cannot_be_is_one_line(arguments: list[str], message: str, refused: Refused) -> None:
    """A user's mistake is reported before anything runs."""
    assert message in refused(["live", *arguments])
