"""Whole runs of the plugin with ``--backend=opencl``, on a made-up device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import operator_cases
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import EMBEDDING_ROLE, Phase
from perfsuite.records.observation import read_observation
from perfsuite.records.opencl_commands import OpenClTrace
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from tests.conftest import STORED_MODEL
from tests.fake_device import HostRuns, watch_on
from tests.fake_opencl import SCENARIO, FakeOpenCl
from tests.synthetic_opencl_run import GAP_NS, PASS_NS
from tests.sys_trees import plant

#: What each run has besides.
USUAL = (
    *("--backend=opencl", f"--scenario={SCENARIO}", "-k", "test_phase or test_operator or test_engine_kernel"),
    *("--perf-replicates=6", "-o", "perf_session_spread=0.01"),
)

PREFIX = f"{STORED_MODEL}/{SCENARIO}"


def test_an_opencl_run_measures_phases_operators_and_kernels_by_its_commands(
    runs: HostRuns, fake_opencl: FakeOpenCl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kernels sum to their executions, operators to what they occupy; each process has a layout, a clock and tokens."""
    watch_on(plant("orangepi5", tmp_path / "board"), monkeypatch)
    result = runs()
    assert result.ret == 0
    found = runs.cases()
    assert {case["outcome"] for case in found.values()} == {"new"}
    phases = ("prefill", "decode", "copy", "softmax", "sampling", "end_to_end")
    assert {f"phase/{PREFIX}/{phase}" for phase in phases} == {each for each in found if each.startswith("phase")}
    expected = tuple(operator_cases(fake_opencl.workload(fake_opencl.plans[0])))
    for phase in (Phase.PREFILL, Phase.DECODE):
        roles = {case.role for case in expected if case.phase is phase} - {None, EMBEDDING_ROLE}
        begin = f"operator/{PREFIX}/{phase.value}/"
        assert {f"{begin}{role}" for role in roles} == {each for each in found if each.startswith(begin)}
        assert f"kernel/{PREFIX}/{phase.value}/kernel_mul_mat" in found
    assert found[f"kernel/{PREFIX}/decode/kernel_mul_mat"]["kind"] == "engine_kernel"
    assert not any(isinstance(plan, LlamaPlan) for plan in runs.device.plans)
    parts = [case for each, case in found.items() if each.startswith(f"operator/{PREFIX}/decode/")]
    kernels = [case for each, case in found.items() if each.startswith(f"kernel/{PREFIX}/decode/")]
    decode_ns = found[f"phase/{PREFIX}/decode"]["measured_ns"]
    assert sum(case["measured_ns"] for case in parts) == pytest.approx(decode_ns, rel=1e-3)
    n_launches = len(fake_opencl.roles_of(Phase.DECODE))
    executed_ns = decode_ns - n_launches * (GAP_NS + 300)
    assert sum(case["measured_ns"] for case in kernels) == pytest.approx(executed_ns, rel=1e-3)
    rest_ns = found[f"operator/{PREFIX}/decode/{REST_ROLE}"]["measured_ns"]
    assert rest_ns == pytest.approx(n_launches * (GAP_NS + 100), rel=1e-3)
    assert found[f"phase/{PREFIX}/copy"]["measured_ns"] == pytest.approx(PASS_NS, rel=1e-2)
    share = runs.plain()["operator_share_ratio"]["decode"]
    assert share == pytest.approx(1 - rest_ns / decode_ns, rel=1e-3)
    assert (len(fake_opencl.learnt_plans), len(fake_opencl.plans)) == (1, 6)
    assert len({plan.layout_seed for plan in fake_opencl.plans}) == 6
    assert {(plan.n_repetitions, plan.n_gpu_layers, plan.recorder) for plan in fake_opencl.plans} == {(3, 999, "none")}
    seen = read_observation(runs.pytester.path / "run")
    states = {(each.least_cpu_mhz, each.most_celsius, each.throttled) for each in seen.states}
    assert states == {(2064.0, 45.307, False)}
    assert {len(each.samples_ns) for each in seen.tokens} == {len(seen.states)} == {6}
    assert (seen.timelines, seen.graphs) == ((), ())  # operators have no times of their own on one clock
    assert seen.works
    result.stdout.fnmatch_lines(["perfsuite: learning", f"perfsuite: {PREFIX}, *, backend opencl, *"])
    plain = runs.plain()
    fingerprint = plain["fingerprint"]["llama"]
    assert {name: fingerprint[name] for name in fingerprint if name.startswith("opencl")} == {
        "opencl_platform": "A platform, OpenCL 3.0",
        "opencl_device": "A device",
        "opencl_driver": "1.2",
        "opencl_compatibility_layer": "on",
    }
    assert (fingerprint["backend"], fingerprint["flash_attn"]) == ("opencl", "off")
    assert "A device" in plain["subject"]["llama"]
    result.stdout.fnmatch_lines([f"Operators {PREFIX}*", f"Kernels of the engine {PREFIX}*"])


def test_a_slower_kernel_is_regressed_with_its_operator(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    """Twice the time of one kernel fails it and what it computes in each phase, and nothing beside it."""
    assert runs("--baseline=record").ret == 0
    assert runs().ret == 0
    assert runs.outcomes() == {"pass"}
    fake_opencl.slowdown["kernel_soft_max"] = 2.0
    assert runs("--perf-step-share=0").ret == 1
    regressed = {each for each, case in runs.cases().items() if case["outcome"] == "regressed"}
    assert {each for each in regressed if each.startswith("kernel/")} == {
        f"kernel/{PREFIX}/{phase}/kernel_soft_max" for phase in ("prefill", "decode")
    }
    operators = {each.rsplit("/", 1)[-1] for each in regressed if each.startswith("operator/")}
    roles = fake_opencl.roles_of(Phase.DECODE, kernel="kernel_soft_max")
    assert operators == set(roles)


def turned(mapping: KernelMapping) -> KernelMapping:
    """Return a mapping in which decode has its kernels in another order."""
    prefill, decode = mapping.sequences
    kernels, roles = decode.kernels[::-1], decode.roles[::-1]
    return KernelMapping(sequences=(prefill, replace(decode, kernels=kernels, roles=roles)))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"n_lost": 2}, "the OpenCL layer lost 2 commands"),
        ({"learnt": turned}, "its kernels are another sequence than any that was learnt"),
    ],
    ids=["lost commands", "another sequence"],
)
def test_what_cannot_be_mapped_leaves_phases_alone(
    runs: HostRuns, fake_opencl: FakeOpenCl, changes: dict[str, Any], told: str
) -> None:
    """Such a trace vouches for no operator and no kernel, which say why; phases have the host's clock."""
    for name, value in changes.items():
        setattr(fake_opencl, name, value)
    assert runs().ret == 0
    found = runs.cases().values()
    assert {(case["kind"], case["outcome"]) for case in found} == {
        ("phase", "new"),
        ("operator", "invalid"),
        ("engine_kernel", "invalid"),
    }
    assert all(told in case["reason"] for case in found if case["outcome"] == "invalid")


def without(stamp: str, kernel: str, rate: float) -> Callable[[OpenClTrace], OpenClTrace]:
    """Return what takes a time from every so many launches of a kernel."""

    def alter(trace: OpenClTrace) -> OpenClTrace:
        commands = trace.commands.copy()
        here = np.flatnonzero(commands["name"] == trace.names.index(kernel))
        commands[stamp][here[:: round(1 / rate)]] = 0
        return replace(trace, commands=commands)

    return alter


@pytest.mark.parametrize(
    ("stamp", "told", "invalid"), [("submit_ns", "QUEUED or SUBMIT", set()), ("end_ns", "START or END", {"operator"})]
)
def test_a_launch_that_is_dropped_costs_no_kernel(
    runs: HostRuns, fake_opencl: FakeOpenCl, stamp: str, told: str, invalid: set[str]
) -> None:
    """A kernel with few such launches has the others; an operator of two launches is invalid without one."""
    assert runs("--baseline=record").ret == 0
    fake_opencl.altered = without(stamp, "kernel_mul_mat", 0.05)
    assert runs().ret == 0
    assert {each.split("/")[0] for each, case in runs.cases().items() if case["outcome"] == "invalid"} == invalid
    assert runs.outcomes() - {"invalid"} == {"pass"}
    (note,) = (each for each in runs.plain()["device_notes"] if "cannot be right" in each)
    assert note.startswith("llama: A device, driver 1.2: times of 5 of ")
    assert f" without {told} " in note


def test_a_kernel_without_times_is_invalid_alone(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    """A kernel without END is INVALID with its counts, and so is what needs its END; all else stays."""
    fake_opencl.altered = without("end_ns", "kernel_soft_max", 1)
    assert runs().ret == 0
    found = runs.cases()
    invalid = {each for each, case in found.items() if case["outcome"] == "invalid"}
    kernels = {each for each in invalid if each.startswith("kernel/")}
    assert kernels == {f"kernel/{PREFIX}/{phase}/kernel_soft_max" for phase in ("prefill", "decode")}
    assert {found[each]["reason"] for each in kernels} == {
        f"{n} of {n} launches have a START or an END that cannot be right ({n} without START or END)" for n in (2, 8)
    }
    assert not any(each.startswith("phase/") for each in invalid)
    operators = {each.rsplit("/", 1)[-1] for each in invalid if each.startswith("operator/")}
    assert set(fake_opencl.roles_of(Phase.DECODE, kernel="kernel_soft_max")) < operators
    assert REST_ROLE in operators
    assert len(operators) <= 2 + 2 * len(set(fake_opencl.roles_of(Phase.DECODE, kernel="kernel_soft_max")))


def test_competition_makes_every_case_invalid(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    fake_opencl.contended = True
    runs()
    found = runs.cases().values()
    assert {case["outcome"] for case in found} == {"invalid"}
    assert all("other processes took 40 % of the time" in case["reason"] for case in found)


def test_an_operator_that_nobody_expects_is_told(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:

    def renamed(mapping: KernelMapping) -> KernelMapping:
        sequences = tuple(replace(each, roles=("surprise", *each.roles[1:])) for each in mapping.sequences)
        return KernelMapping(sequences=sequences)

    fake_opencl.learnt = renamed
    runs()
    case = runs.cases()[f"operator/{PREFIX}/decode/surprise"]
    assert case["outcome"] == "invalid"
    assert "no case claims it" in case["reason"]


def test_a_mapping_that_cannot_be_learnt_stops_the_run(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    fake_opencl.mapping_error = MeasurementError("decode 0: kernel 3 is a group by group, b at full speed")
    result = runs()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: decode 0: kernel 3 is a group by group, b at full speed"])
    assert fake_opencl.plans == []
