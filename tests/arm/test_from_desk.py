"""A board with the files of Debian for arm64, from a desk: set up by a bundle, looked at, measured, in a pair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfsuite.records.bundle import ENGINE, read_manifest
from tests.arm_root import ArmRoot, emulation_obstacle
from tests.board_namespaces import NamespaceBoard
from tests.board_runs import Desk, EndedRun

pytestmark = pytest.mark.long

_LIMIT_S = 300.0

_PHASES = {"prefill", "decode", "end_to_end"}


@pytest.fixture(scope="module")
def arm_board(requires_board: None, arm_root: ArmRoot) -> Iterator[NamespaceBoard]:
    """Give a bare board whose programs are for arm64; the tests of this file share it."""
    if obstacle := emulation_obstacle():
        pytest.skip(f"arm: {obstacle}")
    board = NamespaceBoard(rootfs=arm_root.root)
    try:
        yield board
    finally:
        board.stop()


@pytest.fixture(scope="module")
def desk(arm_board: NamespaceBoard, arm_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Give a desk that has set up the board by a bundle."""
    desk = Desk(folder=tmp_path_factory.mktemp("desk"), reach=arm_board.reach(), limit_s=_LIMIT_S, is_quick=False)
    try:
        done = desk.perfsuite("devices", "setup", desk.name, "--bundle", str(arm_bundle))
        assert done.returncode == 0, done.stderr
        assert f"bundle {read_manifest(arm_bundle).digest} is in use now" in done.stdout
        yield desk
    finally:
        desk.clear()


def test_a_desk_adds_and_probes_it(desk: Desk) -> None:
    """Its profile is written from what it says of itself, over the way that was added."""
    reach = desk.reach
    way = [f"--address=ssh:{reach.address}:{reach.port}", f"--identity-file={reach.identity_file}"]
    way += ["--like=generic-ssh", f"--known-hosts-file={reach.known_hosts_file}"]
    for words in (["add", "fresh", *way], ["probe", "fresh", "--force"]):
        done = desk.perfsuite("devices", *words)
        assert done.returncode == 0, done.stderr
    profile = (desk.folder / "devices" / "fresh.toml").read_text()
    assert str(reach.address) in profile
    assert 'opencl_platform = "Portable Computing Language"' in profile


def test_the_doctor_looks_at_it(desk: Desk) -> None:
    """What the bundle is, that the C library has what it needs, and OpenCL's loader are known from a shell alone."""
    told = desk.perfsuite("devices", "doctor", desk.name, "--json")
    seen = {each["what"]: (each["grade"], each["seen"]) for each in json.loads(told.stdout)}
    assert seen["reach"][0] == "ok"
    assert seen["suite"][1].startswith("perfsuite ")
    grade, library = seen["C library"]
    assert (grade, library.startswith("glibc 2."), "the bundle needs glibc 2." in library) == ("ok", True, True)
    assert seen["OpenCL's loader"][1] == "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1, which reads layers"
    assert "libpocl" in seen["OpenCL's drivers"][1]


def _phases(ended: EndedRun) -> set[str]:
    return {case.rpartition("/")[2] for case in ended.cases}


def test_a_run_has_whole_records_and_verdicts(desk: Desk) -> None:
    """Each phase has a sample of each replicate; beside others, or emulated, it is new or invalid and nothing else."""
    ended = desk.run("--perf-replicates=2")
    assert (ended.errors, ended.sample_counts) == ([], {2}), ended.output
    assert _phases(ended) >= _PHASES
    assert ended.outcomes <= {"new", "invalid"}
    assert ended.record is not None
    assert {each["machine"] for each in ended.record["fingerprint"].values()} == {"aarch64"}
    assert ended.record["board"]["is_linked"]


def test_a_pair_takes_turns_there(desk: Desk, arm_board: NamespaceBoard) -> None:
    """The engine of its bundle against itself: both sides have run, each phase as often."""
    engine = arm_board.home / ".local/share/perfsuite/bundle/current" / ENGINE
    ended = desk.run(f"--against={engine}", "--perf-replicates=2", "--perf-budget=20s")
    assert ended.errors == [], ended.output
    assert _phases(ended) >= _PHASES
    assert not ended.outcomes & {"impossible", "incomparable"}


def test_a_trace_by_ebpf_is_refused_for_what_the_board_lacks(desk: Desk) -> None:
    """The last line names the board and what it lacks."""
    told = desk.perfsuite("trace", f"--device={desk.name}", "--recorder=ebpf", "--model=smollm2-135m-l2-q8_0")
    assert told.returncode == 2, told.stdout
    line = told.stderr.strip().splitlines()[-1]
    assert desk.name in line
    assert "eBPF" in line
