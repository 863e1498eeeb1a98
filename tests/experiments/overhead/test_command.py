"""``perfsuite overhead``, with its workers replaced."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.experiments.overhead.ebpf_cost import EbpfCost
from perfsuite.experiments.overhead.measurement import CPU_COMPARISONS, OPENCL_COMPARISONS, Comparison, Overhead
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan, OverheadPlan
from perfsuite.records.events import Phase
from perfsuite.testing.workers import replace_workers
from perfsuite.verdict.significance import paired_ratio
from tests.command_streams import Refused, Streams
from tests.synthetic_opencl_backend import opencl_backend


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> list[OverheadPlan]:
    """Replace workers by pairs in which the recorder costs a tenth; return the plans that they were given."""
    given: list[OverheadPlan] = []

    def answer(plan: OverheadPlan, **_: object) -> dict[str, Any]:
        given.append(plan)
        quiet = {"wall_ns": 1, "running_ns": 3, "waiting_ns": 1, "steal_ratio": None, "others_ratio": None}
        return {"plain_ns": [1000] * plan.n_pairs, "recorded_ns": [1100] * plan.n_pairs, "contention": quiet}

    replace_workers(monkeypatch, answer)
    return given


def test_overhead_is_measured_for_each_recorder_and_phase(plans: list[OverheadPlan], capsys: Streams) -> None:
    assert main(["overhead", "--json", "--pairs", "20", "--threads", "3"]) == 0
    rows = json.loads(capsys.readouterr().out)
    expected = [(recorder, phase) for recorder in ("callback", "preload", "cb_eval") for phase in ("decode", "prefill")]
    assert [(row["recorder"], row["phase"]) for row in rows] == expected
    assert [(plan.llama.recorder, plan.phase) for plan in plans[::4]] == expected
    assert len(plans) == 4 * len(expected)
    assert all(row["median_ratio"] == row["upper_ratio"] == pytest.approx(1.1) for row in rows)
    assert all((row["pairs"], row["waiting_ratio"]) == (20, 0.25) for row in rows)
    assert {plan.llama.n_threads for plan in plans} == {3}


@dataclass
class Pairs:
    folder: Path
    kind: str = "cpu"
    platforms: list[str | None] = field(default_factory=list)
    compared: list[tuple[Comparison, LlamaPlan, OpenClBackend | None, int]] = field(default_factory=list)

    def set_up(self, _: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
        assert cache_dir == self.folder / "cache"
        self.platforms.append(platform)
        return opencl_backend(self.folder, self.kind)

    def compare(self, comparison: Comparison, plan: LlamaPlan, *_: object, n_pairs: int, **asked: Any) -> Overhead:
        """Return a cost of 2 % of a decode and 1 % of a prefill."""
        asked["announce"](n_pairs)
        self.compared.append((comparison, plan, asked["opencl"], n_pairs))
        new_ns = {Phase.PREFILL: 1010, Phase.DECODE: 1020}
        ratios = {phase: paired_ratio([1000] * n_pairs, [ns] * n_pairs) for phase, ns in new_ns.items()}
        return Overhead(ratios=ratios, n_discarded=0)


@pytest.fixture
def pairs(plans: list[OverheadPlan], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pairs:
    found = Pairs(folder=tmp_path)
    monkeypatch.setattr("perfsuite.experiments.overhead.command.compare_recorders", found.compare)
    monkeypatch.setattr("perfsuite.measure.opencl_backend.set_up_opencl", found.set_up)
    return found


def asked(*names: str) -> list[str]:
    return [part for name in names for part in ("--recorder", name)]


def test_on_opencl_the_profiling_and_the_layer_are_told_apart(pairs: Pairs, capsys: Streams) -> None:
    assert main(["overhead", "--backend", "opencl", "--json", "--opencl-platform", "POCL"]) == 0
    out, err = capsys.readouterr()
    rows = [(row["recorder"], row["phase"], row["pairs"], row["waiting_ratio"]) for row in json.loads(out)]
    names = ("profiling", "layer", "opencl")
    assert rows == [(name, phase, 12, None) for name in names for phase in ("prefill", "decode")]
    assert [each[0] for each in pairs.compared] == [OPENCL_COMPARISONS[name] for name in names]
    assert set(pairs.platforms) == {"POCL"}
    assert "overhead: layer, 12 pairs\n" in err


@pytest.mark.parametrize(("kind", "flash_attn"), [("cpu", False), ("gpu", True)])
def test_the_work_of_a_pair_is_on_the_device(kind: str, flash_attn: bool, pairs: Pairs) -> None:
    pairs.kind = kind
    assert main(["overhead", "--backend", "opencl", *asked("opencl+live"), "--pairs", "7", "--threads", "3"]) == 0
    [(comparison, plan, opencl, n_pairs)] = pairs.compared
    assert comparison is OPENCL_COMPARISONS["opencl+live"]
    assert (plan.n_gpu_layers, plan.flash_attn, plan.recorder, plan.n_threads) == (999, flash_attn, "none", 3)
    assert plan.backend_library == str(pairs.folder / "libggml-opencl.so")
    assert opencl is not None
    assert (opencl.device.type, n_pairs) == (kind, 7)


@pytest.mark.parametrize("name", ["live", "callback+live"])
def test_a_subscriber_on_the_processor_is_compared_in_pairs(name: str, pairs: Pairs, capsys: Streams) -> None:
    """Its row has the ratio of each phase, and no device is looked for."""
    assert main(["overhead", *asked(name), "--json", "--pairs", "5"]) == 0
    rows = {row["phase"]: row for row in json.loads(capsys.readouterr().out)}
    assert {phase: row["median_ratio"] for phase, row in rows.items()} == {
        "prefill": pytest.approx(1.01),
        "decode": pytest.approx(1.02),
    }
    [(comparison, plan, opencl, n_pairs)] = pairs.compared
    assert comparison is CPU_COMPARISONS[name]
    assert (opencl, n_pairs, plan.n_gpu_layers, plan.backend_library) == (None, 5, 0, None)
    assert pairs.platforms == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (asked("opencl"), "--recorder=opencl: on the backend cpu there are callback, preload, cb_eval, ebpf-token, "),
        ([*asked("live", "callback"), "--pairs", "19"], "--pairs=19: expected 20 or more"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    arguments: list[str], message: str, pairs: Pairs, plans: list[OverheadPlan], refused: Refused
) -> None:
    assert message in refused(["overhead", *arguments])
    assert (pairs.compared, pairs.platforms, plans) == ([], [], [])


def test_an_ebpf_recorder_has_the_cost_of_a_hit(
    plans: list[OverheadPlan], monkeypatch: pytest.MonkeyPatch, capsys: Streams, tmp_path: Path
) -> None:
    """It is measured by alternating in one process; hits, the cost of one, and the probes' load have columns."""
    asked: list[tuple[str, int, int]] = []

    def measure(name: str, plan: LlamaPlan, helper: Path, _: object, *, n_pairs: int) -> EbpfCost:
        assert helper == tmp_path / "perfsuite-bpf"
        asked.append((name, plan.n_gen, n_pairs))
        ratio = paired_ratio([1000] * n_pairs, [1017] * n_pairs)
        return EbpfCost(
            ratios={Phase.PREFILL: ratio, Phase.DECODE: ratio},
            hits_per_step=1034.0,
            ns_per_hit=1480.0,
            load_ratio=0.0041,
            waiting_ratio=0.01,
            n_lost=0,
        )

    monkeypatch.setattr("perfsuite.measure.ebpf_helper.find_helper", lambda cache_dir: tmp_path / "perfsuite-bpf")
    monkeypatch.setattr("perfsuite.experiments.overhead.ebpf_cost.measure_ebpf_cost", measure)
    assert main(["overhead", "--recorder", "ebpf-operator+perf", "--recorder", "callback", "--pairs", "20"]) == 0
    out = capsys.readouterr().out
    assert asked == [("ebpf-operator+perf", 48, 20)]
    assert "probes' load" in out
    row = next(line for line in out.splitlines() if line.startswith("ebpf-operator+perf") and "decode" in line)
    assert row.split()[-6:] == ["20", "1034", "1.48", "µs", "0.41", "%"]
    assert len(plans) == 8
