"""Makes up what a run saw beside its times: one operator after the other, tokens, graphs, work, the machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from perfsuite.records.observation import (
    CaseWork,
    MachineState,
    Observation,
    OperatorSpan,
    PhaseGraph,
    PhaseTimeline,
    RoleEdge,
    RoleNode,
    TokenLatency,
)
from perfsuite.records.run_file import RunFile
from perfsuite.testing.run_cases import PHASES_NS, ROLES, PlannedRole, operator_id, phase_id

_N_LAYERS, _N_PROMPT, _N_GEN, _N_REPLICATES = 30, 64, 24, 10

#: Stored bytes and FLOPs a token of the operators that have weights.
_WEIGHT_BYTES = {"Qcur": 10_575_360, "attn_out": 10_575_360, "ffn_gate": 28_200_960, "ffn_up": 28_200_960}
_WEIGHT_BYTES |= {"Kcur": 3_525_120, "Vcur": 3_525_120, "ffn_out": 28_200_960, "result_output": 30_081_024}
_SMALL_BYTES = 69_120

#: Who reads whom within a layer.
_EDGES = (
    *(("attn_norm", each) for each in ("Qcur", "Kcur", "Vcur")),
    *(("Qcur", "Qcur_rope"), ("Kcur", "Kcur_rope"), ("Kcur_rope", "cache_k"), ("Vcur", "cache_v")),
    *((each, "flash_attn_ext") for each in ("Qcur_rope", "cache_k", "cache_v")),
    *(("flash_attn_ext", "attn_out"), ("attn_out", "ffn_inp"), ("ffn_inp", "ffn_norm")),
    *(("ffn_norm", "ffn_gate"), ("ffn_norm", "ffn_up"), ("ffn_gate", "ffn_swiglu"), ("ffn_up", "ffn_swiglu")),
    *(("ffn_swiglu", "ffn_out"), ("ffn_out", "l_out"), ("ffn_inp", "l_out"), ("l_out", "residual_rows")),
    *(("attn_out", "attn_out_rows"), ("residual_rows", "result_norm"), ("result_norm", "result_output")),
)


def synthetic_observation(run: RunFile, *, names: Sequence[str] = ()) -> Observation:
    """Make up what the run saw: equal for equal runs, and in agreement with its times of phases and operators.

    `names` are given to the first operators of the timelines and graphs instead of their own.
    """
    chance = random.Random(f"{run.origin.run_id}/observation")
    times_ns = {each.case_id: each.measured_ns for each in run.judgements if each.measured_ns is not None}
    shown = dict(zip((each.role for each in ROLES), names, strict=False))
    return Observation(
        tokens=_tokens(times_ns.get(phase_id("decode"), PHASES_NS["decode"]), chance),
        timelines=tuple(_timeline(phase, times_ns, shown, chance) for phase in ("prefill", "decode")),
        graphs=tuple(_graph(phase, times_ns, shown) for phase in ("prefill", "decode")),
        works=tuple(_works()),
        states=tuple(_states(chance)),
    )


def _tokens(step_ns: int, chance: random.Random) -> tuple[TokenLatency, ...]:
    """Return steps whose latency grows a little with the context."""
    return tuple(
        TokenLatency(
            n_context=_N_PROMPT + step,
            samples_ns=tuple(
                round(step_ns * (1.0 + 0.001 * step) * chance.lognormvariate(0.0, 0.01)) for _ in range(_N_REPLICATES)
            ),
        )
        for step in range(_N_GEN)
    )


def _role_ns(phase: str, planned: PlannedRole, times_ns: dict[str, int]) -> int:
    usual_ns = planned.prefill_ns if phase == "prefill" else planned.decode_ns
    return times_ns.get(operator_id(phase, planned.role), usual_ns)


def _timeline(phase: str, times_ns: dict[str, int], shown: dict[str, str], chance: random.Random) -> PhaseTimeline:
    spans, now_ns = [], 2_000
    in_order: list[tuple[PlannedRole, int | None]] = [
        (planned, layer) for layer in range(_N_LAYERS) for planned in ROLES if planned.is_layered
    ]
    for planned, layer in (*in_order, *((planned, None) for planned in ROLES if not planned.is_layered)):
        share_ns = _role_ns(phase, planned, times_ns) / (_N_LAYERS if planned.is_layered else 1)
        duration_ns = max(1, round(share_ns * chance.lognormvariate(0.0, 0.05)))
        spans.append(
            OperatorSpan(
                role=shown.get(planned.role, planned.role),
                op=planned.op,
                layer=layer,
                start_ns=now_ns,
                duration_ns=duration_ns,
            )
        )
        now_ns += duration_ns + 150
    n_tokens = _N_PROMPT if phase == "prefill" else 1
    return PhaseTimeline(phase=phase, n_tokens=n_tokens, duration_ns=now_ns + 2_000, operators=tuple(spans))


def _graph(phase: str, times_ns: dict[str, int], shown: dict[str, str]) -> PhaseGraph:
    nodes = tuple(
        RoleNode(
            role=shown.get(planned.role, planned.role),
            op=planned.op,
            n_operators=_N_LAYERS if planned.is_layered else 1,
            time_ns=_role_ns(phase, planned, times_ns),
        )
        for planned in ROLES
    )
    return PhaseGraph(
        phase=phase,
        nodes=nodes,
        edges=tuple(
            RoleEdge(source=shown.get(source, source), target=shown.get(target, target)) for source, target in _EDGES
        ),
    )


def _works() -> Iterator[CaseWork]:
    """Return the work of both phases and their operators: each weight is read once, and is a MAC a token."""
    for phase, n_prompt in (("prefill", _N_PROMPT), ("decode", 1)):
        works = []
        for planned in ROLES:
            n_tokens = n_prompt if planned.is_layered else 1
            n_bytes = _WEIGHT_BYTES.get(planned.role, _SMALL_BYTES * n_tokens)
            n_macs = n_bytes * n_tokens if planned.role in _WEIGHT_BYTES else n_bytes // 8
            works.append(CaseWork(case_id=operator_id(phase, planned.role), flops=2 * n_macs, moved_bytes=n_bytes))
        flops, moved_bytes = sum(each.flops for each in works), sum(each.moved_bytes for each in works)
        yield CaseWork(case_id=phase_id(phase), flops=flops, moved_bytes=moved_bytes)
        yield from works


def _states(chance: random.Random) -> Iterator[MachineState]:
    """Return a replicate every four seconds of each group; one of the engine's does not count."""
    for number in range(2 * _N_REPLICATES + 1):
        group = "llama" if number <= _N_REPLICATES else "kernels"
        is_valid = number != 4
        yield MachineState(
            group=group,
            at_s=5.2 + 3.9 * number,
            is_valid=is_valid,
            load_average=round(chance.uniform(0.0, 0.9), 3),
            cpu_mhz=round(chance.gauss(2590.0, 15.0), 1),
            temperature_celsius=round(52.0 + 0.4 * number + chance.gauss(0.0, 0.5), 1),
            waiting_ratio=round(chance.uniform(0.0, 0.01) if is_valid else 0.21, 5),
            steal_ratio=0.0 if number % 2 else None,
            throttled=number >= 2 * _N_REPLICATES - 1,
            power_watts=round(6.0 + 0.05 * number, 2),
        )
