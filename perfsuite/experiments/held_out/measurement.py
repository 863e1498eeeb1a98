"""How wrong the forecast is, on workloads that no calibration ever ran."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median

from perfsuite.device.profile import Profile
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.calibration_plan import standard_compositions
from perfsuite.expectation.timing.engine_times import EngineTimes, phase_shapes
from perfsuite.experiments.said_graphs import engine_graphs
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.schedule import Rule, run_undisturbed
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.workload.model_shape import check_generates
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What is run again."""

    workload: LlamaWorkload
    #: What an occurrence of each phase took when the device was calibrated, ns.
    calibrated_ns: Mapping[Phase, float]

    def drift_ratios(self, record: EngineRecord) -> dict[Phase, float]:
        """Return the time of each phase now over that of the calibration."""
        return {phase: phase_ns(record, phase) / then_ns for phase, then_ns in self.calibrated_ns.items()}


def anchor_of(calibration: Calibration, *, models_dir: Path) -> Anchor | None:
    """Return the first model that a calibration ran whole; None where it ran none that is known by now."""
    for workload in (each for each in standard_compositions(models_dir) if each.is_analytical):
        found = [each for each in calibration.compositions if each.name == workload.weights.name]
        if found:
            times = {
                Phase(each.phase): median(map(sum, zip(each.operators_ns, each.rest_ns, strict=True))) for each in found
            }
            return Anchor(workload=workload, calibrated_ns=times)
    return None


def phase_ns(record: EngineRecord, phase: Phase) -> float:
    """Return what one occurrence of a phase took in a process, ns."""
    return median(span.duration_ns for span in record.spans if span.phase is phase)


def workload_of(text: str) -> tuple[str, int]:
    """Return the weights and the prompt length of ``NAME:PROMPT``, as ``--workload`` has them."""
    name, _, length = text.rpartition(":")
    if not name or not length.isdecimal() or int(length) < 1:
        raise PerfsuiteError(f"--workload={text}: expected NAME:PROMPT, such as llama-3.2-1b-q4_0:128")
    return name, int(length)


_HELD_OUT = """
    smollm2-135m-q8_0:64 smollm2-360m-q8_0:1024 qwen2.5-0.5b-q4_k_m:64 qwen3-0.6b-q8_0:128 llama-3.2-1b-q4_0:128
    pythia-410m-q8_0:200 gemma-2-2b-l6-q4_0:128 phi-4-mini-l8-q4_0:96 plm-1.8b-l12-q4_0:100 gemma-3-1b-q8_0:128
    smollm3-3b-l8-q4_0:200 olmo-2-1b-l8-q4_k_m:64 ernie-4.5-0.3b-q8_0:300 hunyuan-0.5b-q4_0:512
    exaone-4.0-1.2b-l10-f16:64 minicpm4-0.5b-q8_0:96 internlm2.5-1.8b-l8-q6_k:64 stablelm-2-1.6b-l8-q4_0:160
    starcoder2-3b-l6-q8_0:32 qwen1.5-moe-a2.7b-l3-q4_0:128 deepseek-v2-lite-l3-q4_0:256 qwen3-30b-a3b-l3-q4_0:128
    olmoe-1b-7b-l4-q8_0:64 granite-3.1-1b-a400m-l12-q4_0:100 lfm2-350m-q8_0:128 granite-4.0-h-tiny-l8-q4_0:128
    falcon-h1-0.5b-q8_0:96 mamba-130m-f16:128 mamba2-130m-q8_0:256 rwkv7-1.5b-l8-q8_0:64
"""
#: Weights and prompt lengths: 26 architectures, dense, with experts, hybrid and state space, five quantisations, 32 to
#: 1024 tokens; the larger ones are cut to some of their layers.
HELD_OUT = tuple(map(workload_of, _HELD_OUT.split()))

#: Tokens that are generated after each prompt.
N_GEN = 16
#: Fresh processes for each workload.
N_PROCESSES = 2

#: What is forecast, and the phase of the engine that it is: one evaluation of the prompt, one of a token.
LATENCIES = (("ttft", Phase.PREFILL), ("tpot", Phase.DECODE))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRow:
    """One latency of one workload, forecast and measured."""

    weights: str
    n_prompt: int
    #: ``ttft`` or ``tpot``.
    latency: str
    expected_ns: float
    lower_ns: float
    upper_ns: float
    measured_ns: float
    #: The device then over the device when it was calibrated, by what of the calibration ran again before and after.
    drift_ratio: float = 1.0

    @property
    def error_ratio(self) -> float:
        return self.expected_ns / self.measured_ns - 1.0

    @property
    def error_without_drift_ratio(self) -> float:
        """The same of a forecast for the device as it was then."""
        return self.expected_ns * self.drift_ratio / self.measured_ns - 1.0

    @property
    def is_inside(self) -> bool:
        return self.lower_ns <= self.measured_ns <= self.upper_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutSummary:
    """The errors of one latency over all workloads."""

    latency: str
    n_rows: int
    mean_absolute_error_ratio: float
    #: Mean of the signed errors: above 0, the forecast is too slow.
    bias_ratio: float
    worst_error_ratio: float
    inside_ratio: float
    #: Mean absolute error of forecasts for the device as it was at each measurement.
    mean_error_without_drift_ratio: float


def measure_held_out(
    times: EngineTimes,
    workloads: Sequence[tuple[str, int]],
    *,
    board: Board,
    profile: Profile,
    n_threads: int,
    models_dir: Path,
    anchor: Anchor | None,
    progress: Callable[[str], None],
) -> tuple[HeldOutRow, ...]:
    """Forecast each workload first and measure it then; a name that is unknown, or no generator's, ends it first.

    The `anchor` is run between any two, and tells how far the device has drifted.

    Raises `PerfsuiteError`: a workload is unknown, or its worker failed or was disturbed each time that it was tried.
    """
    order, rule = random.Random(), Rule(profile=profile)
    engine, cache_dir = board.facts().engine, board.facts().cache_dir
    rows: list[HeldOutRow] = []
    described = [_workload(name, n_prompt, models_dir) for name, n_prompt in workloads]

    def run(workload: LlamaWorkload) -> EngineRecord:
        path = board.place_weights(workload.weights)
        plan = llama_plan(workload, engine, gguf_path=path, cache_dir=cache_dir, n_threads=n_threads, n_repetitions=2)
        return EngineRecord.from_plain(run_undisturbed(board, with_drawn_layout(plan, order), rule).get("engine"))

    def drift() -> Mapping[Phase, float]:
        return {phase: 1.0 for _, phase in LATENCIES} if anchor is None else anchor.drift_ratios(run(anchor.workload))

    before = drift()
    for at, ((name, n_prompt), workload) in enumerate(zip(workloads, described, strict=True)):
        progress(f"{at + 1} of {len(workloads)}: {name}, {n_prompt} tokens")
        if not workload.is_analytical:
            workload = replace(workload, engine_graphs=engine_graphs(workload, engine, board, models_dir=models_dir))
        forecasts = {phase: times.phase(phase_shapes(workload, phase), phase.value) for _, phase in LATENCIES}
        records = [run(workload) for _ in range(N_PROCESSES)]
        after = drift()
        for latency, phase in LATENCIES:
            rows.append(
                HeldOutRow(
                    weights=name,
                    n_prompt=n_prompt,
                    latency=latency,
                    **asdict(forecasts[phase]),
                    measured_ns=median(phase_ns(record, phase) for record in records),
                    drift_ratio=math.sqrt(before[phase] * after[phase]),
                )
            )
        before = after
    return tuple(rows)


def _workload(name: str, n_prompt: int, models_dir: Path) -> LlamaWorkload:
    weights = resolve(name, cache_dir=models_dir)
    check_generates(weights.shape, f"--workload={name}:{n_prompt}")
    return llama_workload(weights, find_scenario(f"p{n_prompt}-g{N_GEN}"))


def summarize(rows: Sequence[HeldOutRow]) -> tuple[HeldOutSummary, ...]:
    """Summarise the rows of each latency."""
    found = {latency: [row for row in rows if row.latency == latency] for latency, _ in LATENCIES}
    return tuple(
        HeldOutSummary(
            latency=latency,
            n_rows=len(members),
            mean_absolute_error_ratio=fmean(abs(row.error_ratio) for row in members),
            bias_ratio=fmean(row.error_ratio for row in members),
            worst_error_ratio=max((row.error_ratio for row in members), key=abs),
            inside_ratio=fmean(row.is_inside for row in members),
            mean_error_without_drift_ratio=fmean(abs(row.error_without_drift_ratio) for row in members),
        )
        for latency, members in found.items()
        if members
    )
