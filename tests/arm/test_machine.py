"""A whole machine of 64-bit Arm: what only its own kernel has. Nothing that an emulator counts or times is judged."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfsuite.device.probe.profile_text import profile_text
from perfsuite.device.probe.readings import take_survey
from perfsuite.device.profile.file import ProfileFile
from perfsuite.device.target.opening import open_target
from perfsuite.measure.ebpf import helper_options
from perfsuite.measure.ebpf_helper import HelperTarget, build_helper, build_obstacle
from perfsuite.measure.engine import find_engine
from perfsuite.measure.native import Compilers
from perfsuite.measure.plan import EbpfPlan
from perfsuite.measure.tensor_layout import tensor_layout
from perfsuite.records.bpf_log_file import BpfFlag, BpfKind, EndReason, read_bpf_log
from perfsuite.records.bundle import ENGINE
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.workload.weights import materialize, resolve
from tests.arm_machine import ArmMachine
from tests.arm_root import C_COMPILER, COMPILER, SYSTEM_EMULATOR, ArmRoot, missing_tool
from tests.measure.traced_llama import build_traced_llama
from tests.native.conftest import NATIVE, run

pytestmark = pytest.mark.long

_N_TOKENS, _N_THREADS = 3, 2
_LEVELS = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE | TraceLevel.COUNTERS
#: One more than the machine counts at once: its cycles and six others.
_COUNTERS = (
    *("cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "stall_frontend", "stall_backend"),
    *("mem_access", "bus_access", "l2d_cache_refill"),
)

#: Loads a model, records how it decodes, and leaves log and notes on the desk; it waits for nothing for ever.
_RECORD = """
mkdir /tmp/run && cp /desk/* /tmp/run 2>/dev/null; cd /tmp/run; mkfifo in control
await() {{ n=0; until grep -q "$1" "$2"; do n=$((n + 1)); [ $n -lt 600 ] || exit 3; sleep 0.2; done; }}
./traced_llama model {threads} <in >out & pid=$!
exec 3>in; await ready out
./perfsuite-bpf {options} </dev/null >/dev/null 2>refused
sysctl -q kernel.perf_event_paranoid=2
./perfsuite-bpf {options} <control >log 2>notes & helper=$!
exec 4>control; await '^[re]' notes
grep -q ready notes || {{ cat notes; kill $pid; exit 4; }}
echo {tokens} >&3; await done out
exec 4>&-; wait $helper; status=$?; kill $pid
cp log notes refused /desk; exit $status
"""


@pytest.fixture(scope="module")
def machine(arm_root: ArmRoot) -> Iterator[ArmMachine]:
    """Give a machine that has booted; the tests of this file share it."""
    if obstacle := missing_tool(SYSTEM_EMULATOR, "ssh"):
        pytest.skip(f"arm: {obstacle}")
    booted = ArmMachine(arm_root)
    try:
        yield booted
    finally:
        booted.stop()


@pytest.fixture(scope="module")
def helper(arm_root: ArmRoot, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the eBPF recorder's helper for the machine's kernel, or skip where it cannot be compiled."""
    folder = tmp_path_factory.mktemp("helper")
    (folder / "types").write_bytes(arm_root.kernel_types())
    target = HelperTarget(
        machine="aarch64",
        kernel_types=folder / "types",
        compilers=Compilers(c=(C_COMPILER,), cxx=(COMPILER,)),
        # The libraries may need a C library that is newer than the compiler's own.
        flags=(f"--sysroot={arm_root.root}", "-Wl,--allow-shlib-undefined"),
    )
    if obstacle := missing_tool(COMPILER) or build_obstacle(target):
        pytest.skip(f"arm: {obstacle}")
    return build_helper(folder, target)


def test_its_kernel_tells_the_types_that_the_helper_was_compiled_with(machine: ArmMachine, arm_root: ArmRoot) -> None:
    """What is cut out of the kernel's file is what the running kernel says of itself."""
    machine.said("cp /sys/kernel/btf/vmlinux /desk/types")
    assert (machine.folder / "types").read_bytes() == arm_root.kernel_types()


def test_the_generic_timer_is_the_clock(machine: ArmMachine) -> None:
    """The native test of the clocks passes on the counter of the processor itself."""
    if obstacle := missing_tool(C_COMPILER):
        pytest.skip(f"arm: {obstacle}")
    sources = [str(NATIVE / "tests" / name) for name in ("test_clock.c", "check.c")]
    program = machine.folder / "test_clock"
    run([C_COMPILER, "-O2", f"-I{NATIVE}/include", f"-I{NATIVE}/tests", *sources, "-o", str(program)])
    disassembled = run(["aarch64-linux-gnu-objdump", "-d", str(program)])
    assert "cntvct_el0" in disassembled
    machine.said("/desk/test_clock")


def test_a_profile_is_made_of_its_device_tree(machine: ArmMachine, tmp_path: Path) -> None:
    """The survey over ssh reads the device tree's names and Arm's processors, and the profile is accepted."""
    target = open_target(machine.reach())
    survey = take_survey(target)
    target.close()
    assert survey.text("machine") == "aarch64"
    assert survey.all("/proc/device-tree/compatible") == ("linux,dummy-virt",)
    assert sum(line.startswith("CPU implementer") for line in survey.all("/proc/cpuinfo")) == _N_THREADS
    text = profile_text(survey, machine.reach(), day="2026-01-01")
    assert 'description = "linux,dummy-virt"' in text
    place = tmp_path / "arm.toml"
    tables = ProfileFile(name="arm", place=place, where=str(place), folder=tmp_path, draft=text.encode()).tables()
    assert tables


def test_operators_are_traced_with_counters_that_take_turns(
    machine: ArmMachine, helper: Path, arm_bundle: Path, tmp_path: Path
) -> None:
    """eBPF sees every token, graph and operator of llama.cpp on both threads, each with what its thread has counted.

    More counters than the processor has take turns, which records say. Debian's kernel lets root alone count from its
    start, which is reported with what allows it.
    """
    engine = find_engine()
    model = materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path), cache_dir=tmp_path)
    shutil.copy(model, machine.folder / "model")
    there = replace(engine, library_dir=arm_bundle / ENGINE)
    for path in (helper, build_traced_llama(there, tmp_path, C_COMPILER), *there.library_dir.iterdir()):
        shutil.copy(path, machine.folder)
    plan = EbpfPlan(helper="", log_path="", levels=int(_LEVELS), counters=_COUNTERS)
    options = helper_options(1, plan, tensor_layout(engine, tmp_path), machine="aarch64")
    options[options.index("--pid") + 1] = "$pid"
    script = _RECORD.format(threads=_N_THREADS, tokens=_N_TOKENS, options=" ".join(options))
    done = machine.run(script, limit_s=280)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    refused = (machine.folder / "refused").read_text().splitlines()
    assert len([line for line in refused if "sysctl kernel.perf_event_paranoid=2 (Permission denied)" in line]) == 8
    assert (machine.folder / "notes").read_text() == "ready\n"
    log = read_bpf_log(machine.folder / "log")
    assert log.cut is None
    (last,) = log.records[log.positions(BpfKind.END)]
    assert (EndReason(int(last["value"])), int(last["subject"])) == (EndReason.TOLD, 0)
    for kind in (BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END, BpfKind.GRAPH_BEGIN, BpfKind.GRAPH_END):
        assert log.positions(kind).size == _N_TOKENS
    places = log.positions(BpfKind.OPERATOR_BEGIN)
    operators = log.records[places]
    by_thread = [operators["subject"][operators["tid"] == tid].tolist() for tid in np.unique(operators["tid"])]
    assert len(by_thread) == _N_THREADS
    assert by_thread[0] == by_thread[1]
    assert len(by_thread[0]) % _N_TOKENS == 0
    assert log.counter_names == _COUNTERS
    assert (operators["flags"] & BpfFlag.HAS_COUNTERS != 0).all()
    assert (operators["flags"] & BpfFlag.MULTIPLEXED != 0).any()
    assert log.counters(places)[:, 0].max() > 0


def test_programs_of_this_machine_do_not_run_there(machine: ArmMachine) -> None:
    """It is another architecture: what is compiled for here is refused by its kernel."""
    shutil.copy("/bin/true", machine.folder / "foreign")
    done = machine.run("/desk/foreign")
    assert done.returncode != 0
    assert subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip() != "aarch64"
