"""A test board with the files of Debian for arm64: what a desk sees of it, and what a bundle does on it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from perfsuite.device.probe.readings import take_survey
from perfsuite.device.target.opening import open_target
from perfsuite.measure.plan import LlamaPlan, dump_plan, load_record
from perfsuite.records.bundle import ENGINE, LIBRARIES, WORKER, read_manifest
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.workload.weights import materialize, resolve
from tests.arm_root import ArmRoot, emulation_obstacle
from tests.board_namespaces import NamespaceBoard

pytestmark = pytest.mark.long

_LIMIT_S = 120.0


@pytest.fixture(scope="module")
def arm_board(requires_board: None, arm_root: ArmRoot) -> Iterator[NamespaceBoard]:
    """Give a board whose programs are for arm64, without Python; the tests of this file share it."""
    if obstacle := emulation_obstacle():
        pytest.skip(f"arm: {obstacle}")
    board = NamespaceBoard(rootfs=arm_root.root)
    try:
        yield board
    finally:
        board.stop()


def test_it_is_an_arm_board_without_python(arm_board: NamespaceBoard) -> None:
    """Over ssh it calls itself aarch64, has a home of its own, and neither Python nor a compiler."""
    with closing(open_target(arm_board.reach())) as target:
        survey = take_survey(target)
        assert survey.text("machine") == "aarch64"
        assert survey.text("home") == str(arm_board.home)
        for name in ("python3", "gcc", "cc"):
            assert target.run(["sh", "-c", f"command -v {name}"]).status != 0


def test_a_reboot_brings_it_back(requires_board: None, arm_root: ArmRoot) -> None:
    """It keeps its home over a reboot, and nothing is written to the files that it was made of."""
    if obstacle := emulation_obstacle():
        pytest.skip(f"arm: {obstacle}")
    board = NamespaceBoard(rootfs=arm_root.root)
    try:
        board.run("sh", "-c", "echo kept >kept; echo new >/etc/own")
        board.reboot()
        with closing(open_target(board.reach())) as target:
            assert target.run(["cat", "kept", "/etc/own"]).text.split() == ["kept", "new"]
    finally:
        board.stop()
    assert not (arm_root.root / "etc" / "own").exists()


def test_opencl_finds_pocl_there(arm_board: NamespaceBoard) -> None:
    """The loader and a driver for arm64 run on the board: there is an OpenCL platform with a processor."""
    told = arm_board.run("clinfo", "-l", limit_s=_LIMIT_S)
    assert "Platform #0: Portable Computing Language" in told.stdout, told.stderr
    assert "Device #0" in told.stdout


def test_a_bundle_that_is_pushed_runs_a_replicate(
    arm_board: NamespaceBoard, arm_bundle: Path, tmp_path: Path, in_home: Callable[[Path], str]
) -> None:
    """Unpacked over ssh, the worker takes a plan and leaves a whole record: phases, tokens and timed nodes."""
    model = materialize(resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path), cache_dir=tmp_path)
    bundle = in_home(arm_bundle)
    plan = LlamaPlan(
        gguf_path=in_home(model),
        library_dir=f"{bundle}/{ENGINE}",
        engine_build_id=read_manifest(arm_bundle).engine.build_id,
        cache_dir=str(arm_board.home),
        n_threads=2,
        n_prompt=16,
        n_gen=4,
    )
    (tmp_path / "plan").write_bytes(dump_plan(plan))
    words = [f"{bundle}/{WORKER}", "run", in_home(tmp_path / "plan"), f"{arm_board.home}/record"]
    words += [f"--{name}-library={bundle}/{LIBRARIES}/libperfsuite_{name}.so" for name in ("engine", "probe")]
    with closing(open_target(arm_board.reach())) as target:
        done = target.run(words, limit_s=_LIMIT_S)
    assert done.status == 0, done.last_words
    payload = load_record(arm_board.outside("record").read_bytes(), plan.task)
    record = EngineRecord.from_plain(payload["engine"])
    assert sum(span.phase == Phase.DECODE for span in record.spans) == plan.n_gen
    assert record.n_dropped == 0
    assert all(any(node.timed for node in graph) for graph in record.graphs)
    assert record.graphs


@pytest.fixture
def in_home(arm_board: NamespaceBoard) -> Callable[[Path], str]:
    """Return how to put a file or a folder into the board's home by tar, over ssh; what is left is its path there."""

    def put(path: Path) -> str:
        reach = arm_board.reach()
        ssh = ["ssh", "-i", str(reach.identity_file), "-p", str(reach.port), "-o", "BatchMode=yes"]
        ssh += ["-o", f"UserKnownHostsFile={reach.known_hosts_file}", str(reach.address), "tar", "-x"]
        packed = subprocess.run(["tar", "-C", path.parent, "-c", path.name], capture_output=True, check=True)
        subprocess.run(ssh, input=packed.stdout, check=True, timeout=_LIMIT_S)
        return f"{arm_board.home}/{path.name}"

    return put
