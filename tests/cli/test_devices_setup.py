"""``perfsuite devices setup`` of a board: what is sent, what is used, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.setup.board_survey import BoardSurvey, check_fit, check_room
from perfsuite.errors import DeviceError
from perfsuite.measure.bundle.making import Bundle, BundleOrder
from perfsuite.measure.plan import SCHEMA
from perfsuite.records.bundle import (
    LOADER,
    MANIFEST_NAME,
    WORKER,
    BundledEngine,
    BundledFile,
    BundleManifest,
    content_digest,
    listed_files,
    read_manifest,
    write_manifest,
)
from tests.command_streams import Streams

from ..board_links import LinkedBoard

_HOME = Path(".local/share/perfsuite")

#: For what is decided at the desk, whatever the link.
OVER_ADB = pytest.mark.parametrize("linked_board", ["adb"], indirect=True)


def plant_bundle(folder: Path, *, worker: str = "#!/bin/sh\necho perfsuite-worker\n", library: str = "one") -> Path:
    """Write a bundle whose program is a script of the shell."""
    shutil.rmtree(folder, ignore_errors=True)
    for path, text in ((WORKER, worker), ("lib/libperfsuite_engine.so", library), ("engine/libllama.so.0", "llama")):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / WORKER).chmod(0o755)
    write_manifest(folder, manifest_of(listed_files(folder, (WORKER,))))
    return folder


def manifest_of(files: tuple[BundledFile, ...]) -> BundleManifest:
    return BundleManifest(
        suite_version="0.1.0",
        plan_schema=3,
        digest=content_digest(files),
        target="test-linux-gnu",
        machines=(os.uname().machine,),
        processor="any",
        compiler="none",
        flags=(),
        settings=(),
        llama="none",
        llama_digest="0",
        engine=BundledEngine(library_dir="engine", include_dirs=(), build_id="0123456789abcdef", has_blas=False),
        least_glibc="2.17",
        files=files,
    )


@pytest.fixture
def bench(linked_board: LinkedBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkedBoard:
    """Return a board that is the device ``bench``, over each kind of link in turn."""
    monkeypatch.chdir(tmp_path)
    linked_board.write_profile(tmp_path / "devices" / "bench.toml")
    return linked_board


def set_up(bundle: Path, *more: str) -> int:
    return main(["devices", "setup", "bench", "--bundle", str(bundle), *more])


def in_use(board: LinkedBoard) -> Path:
    """Return the folder of the bundle that the board uses."""
    return (board.home / _HOME / "bundle" / "current").resolve()


def examined(capsys: Streams) -> dict[str, dict[str, str]]:
    """Return what the doctor finds."""
    capsys.readouterr()
    main(["devices", "doctor", "bench", "--json"])
    return {each["what"]: each for each in json.loads(capsys.readouterr().out)}


def left_on(board: LinkedBoard) -> set[str]:
    """Return what is beside the bundles, hidden or not."""
    return {path.name for path in (board.home / _HOME / "bundle").iterdir()}


def test_a_bundle_may_bring_what_starts_its_programs(bench: LinkedBoard, tmp_path: Path) -> None:
    """Every program of it may be run on the board before the worker is, which needs the other one."""
    bundle = plant_bundle(tmp_path / "bundle", worker='#!/bin/sh\nexec "${0%/*}/lib/ld-musl.so"\n')
    (bundle / LOADER).write_text("#!/bin/sh\necho perfsuite-worker\n")
    write_manifest(bundle, manifest_of(listed_files(bundle, (WORKER, LOADER))))
    assert set_up(bundle) == 0
    assert os.access(in_use(bench) / LOADER, os.X_OK)
    assert not os.access(in_use(bench) / "lib/libperfsuite_engine.so", os.X_OK)


@pytest.mark.long_but_first
def test_a_board_gets_a_bundle_and_only_what_is_missing(bench: LinkedBoard, tmp_path: Path, capsys: Streams) -> None:
    """The first setup sends all, the second nothing but what was altered there, that of a changed bundle the change."""
    bundle = plant_bundle(tmp_path / "bundle")
    assert set_up(bundle) == 0
    assert "3 files sent" in capsys.readouterr()[0]
    there = in_use(bench)
    assert {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()} == {
        MANIFEST_NAME,
        WORKER,
        "lib/libperfsuite_engine.so",
        "engine/libllama.so.0",
    }
    assert (there / WORKER).stat().st_mode & stat.S_IXUSR
    assert set_up(bundle) == 0
    assert "is there already" in capsys.readouterr()[0]
    (in_use(bench) / "lib" / "libperfsuite_engine.so").write_text("altered")
    (in_use(bench) / "engine" / "libllama.so.0").unlink()
    assert set_up(bundle) == 0
    assert "2 files sent" in capsys.readouterr()[0]
    assert (in_use(bench) / "lib" / "libperfsuite_engine.so").read_text() == "one"
    assert set_up(plant_bundle(tmp_path / "bundle", library="two")) == 0
    assert "1 files sent" in capsys.readouterr()[0]
    assert (in_use(bench) / "lib" / "libperfsuite_engine.so").read_text() == "two"
    assert left_on(bench) == {"current", there.name, in_use(bench).name}


@pytest.mark.long_but_first
def test_what_does_not_run_is_not_used(bench: LinkedBoard, tmp_path: Path, capsys: Streams) -> None:
    """A worker that fails there is reported in its own words, and the bundle before stays in use."""
    assert set_up(plant_bundle(tmp_path / "bundle")) == 0
    before = in_use(bench)
    worker = "#!/bin/sh\necho 'version GLIBC_2.99 not found' >&2; exit 1\n"
    assert set_up(plant_bundle(tmp_path / "bundle", worker=worker)) == 2
    assert "does not run there (version GLIBC_2.99 not found)" in capsys.readouterr()[1]
    assert in_use(bench) == before
    assert set_up(plant_bundle(tmp_path / "bundle")) == 0
    assert left_on(bench) == {"current", before.name}


@pytest.mark.long_but_first
def test_what_lost_its_power_before_the_switch_is_done_by_the_next_setup(bench: LinkedBoard, tmp_path: Path) -> None:
    """A half-sent bundle, a lock of a process that is no more, and a link that is gone are no obstacle."""
    bundle = plant_bundle(tmp_path / "bundle")
    assert set_up(bundle) == 0
    before = in_use(bench)
    place = bench.home / _HOME / "bundle"
    (place / "current").unlink()
    (place / ".part-0123-4567").mkdir()
    (place / ".setup").mkdir()
    (place / ".setup" / "owner").write_text("999999-1 somebody@desk\n")
    assert set_up(bundle) == 0
    assert in_use(bench) == before
    assert left_on(bench) == {"current", before.name}


def test_two_setups_at_once_are_told_apart(bench: LinkedBoard, tmp_path: Path, capsys: Streams) -> None:
    """While somebody's process there holds the board, a second setup says who it is, and sends nothing."""
    place = bench.home / _HOME / "bundle"
    (place / ".setup").mkdir(parents=True)
    started = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(") ")[2].split()[19]
    (place / ".setup" / "owner").write_text(f"{os.getpid()}-{started} eve@desk\n")
    assert set_up(plant_bundle(tmp_path / "bundle")) == 2
    assert "another setup of it is under way, by eve@desk" in capsys.readouterr()[1]
    assert left_on(bench) == {".setup"}


_PROGRAM = """#!/bin/sh
[ "$1 $2" != 'lock state' ] || echo '{"lock": null, "notes": []}'
[ "$1" != devices ] || { cat "${0%/*}/devices"; exit $(cat "${0%/*}/status"); }
"""

_ADRENO = {
    "platform_name": "QUALCOMM Snapdragon(TM)",
    "device_name": "QUALCOMM Adreno(TM)",
    "driver_version": "E031",
    "type": "gpu",
    "compute_units": 6,
}


@pytest.mark.long_but_first
def test_the_doctor_knows_a_bundle(bench: LinkedBoard, tmp_path: Path, capsys: Streams) -> None:
    """What a board's bundle says of itself is in order, with its llama.cpp; one that says nothing fails in a line."""
    bundle = plant_bundle(tmp_path / "made", worker=_PROGRAM)
    manifest = replace(read_manifest(bundle), plan_schema=SCHEMA)
    write_manifest(bundle, manifest)
    assert set_up(bundle) == 0
    found = examined(capsys)
    assert (found["suite"]["grade"], found["suite"]["seen"]) == ("ok", f"perfsuite 0.1.0, plans {SCHEMA}")
    assert found["llama.cpp"]["seen"] == "build 0123456789abcdef"
    assert (found["lock"]["seen"], found["disk"]["grade"]) == ("nobody has it", "ok")
    (in_use(bench) / WORKER).write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    assert examined(capsys)["suite"]["seen"].startswith("its program does not run")


@pytest.mark.long_but_first
@OVER_ADB
@pytest.mark.parametrize(
    ("printed", "status", "what", "grade", "seen"),
    [
        (json.dumps([_ADRENO]), 0, "OpenCL", "ok", "QUALCOMM Snapdragon(TM): QUALCOMM Adreno(TM) (gpu, driver E031)"),
        (
            json.dumps([{**_ADRENO, "platform_name": "rusticl"}]),
            *(0, "OpenCL", "fail", "no OpenCL platform has 'QUALCOMM' in its name; there are: rusticl"),
        ),
        ("perfsuite-worker-failed: OpenCL: none is there", 1, "OpenCL", "fail", "OpenCL: none is there"),
        ("{}", 0, "suite", "fail", "its program names no OpenCL devices, but says '{}'"),
    ],
)
def test_the_doctor_asks_a_bundle_for_opencl(
    bench: LinkedBoard, printed: str, status: int, what: str, grade: str, seen: str, tmp_path: Path, capsys: Streams
) -> None:
    """The program of the bundle loads the board's drivers, and names what a run would measure."""
    profile = tmp_path / "devices" / "bench.toml"
    profile.write_text(f'opencl_platform = "QUALCOMM"\n{profile.read_text()}')
    assert set_up(plant_bundle(tmp_path / "made", worker=_PROGRAM)) == 0
    (in_use(bench) / "devices").write_text(f"{printed}\n")
    (in_use(bench) / "status").write_text(str(status))
    found = examined(capsys)[what]
    assert (found["grade"], found["seen"]) == (grade, seen)


@pytest.mark.long_but_first
def test_removing_leaves_no_trace(bench: LinkedBoard, tmp_path: Path) -> None:
    """The folder of the suite is gone, and what somebody else has put in there stays."""
    bundle = plant_bundle(tmp_path / "bundle")
    assert set_up(bundle) == 0
    assert main(["devices", "setup", "bench", "--remove"]) == 0
    assert not (bench.home / _HOME).exists()
    assert set_up(bundle) == 0
    (bench.home / _HOME / "notes").write_text("mine")
    assert main(["devices", "setup", "bench", "--remove"]) == 0
    assert [path.name for path in (bench.home / _HOME).iterdir()] == ["notes"]


@OVER_ADB
@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("lib/libperfsuite_engine.so", "one", "two", "libperfsuite_engine.so: has 3 bytes, sha256 "),
        (MANIFEST_NAME, "engine/libllama.so.0", "engine/none", "and itself "),
        (MANIFEST_NAME, "engine/libllama.so.0", "../../.ssh/authorized_keys", "is not a name of a file in a bundle"),
        (MANIFEST_NAME, os.uname().machine, "sparc", "the bundle is for test-linux-gnu"),
    ],
)
def test_a_damaged_bundle_is_not_sent(
    bench: LinkedBoard, tmp_path: Path, capsys: Streams, file: str, old: str, new: str, told: str
) -> None:
    """What is wrong is one line, and nothing is written on the board."""
    bundle = plant_bundle(tmp_path / "bundle")
    (bundle / file).write_text((bundle / file).read_text().replace(old, new))
    assert set_up(bundle) == 2
    assert told in capsys.readouterr()[1]
    assert not (bench.home / _HOME).exists()


BOARD = BoardSurvey(
    machine=os.uname().machine,
    glibc="2.36",
    has_musl=False,
    is_android=False,
    features=frozenset(),
    free_bytes=50_000_000,
)


@pytest.mark.parametrize(
    ("board", "told"),
    [
        (replace(BOARD, glibc="2.9"), "has glibc 2.9, the bundle needs 2.17"),
        (replace(BOARD, glibc=None, has_musl=True), "has musl, the bundle needs glibc 2.17"),
        (replace(BOARD, machine="riscv64"), "is riscv64, the bundle is for test-linux-gnu"),
    ],
)
def test_a_board_that_does_not_suit_is_refused(board: BoardSurvey, told: str) -> None:
    """Another machine, another C library and an older glibc are reported with what the bundle needs."""
    with pytest.raises(DeviceError, match=told):
        check_fit("bench", board, manifest_of(()))


def test_a_board_without_room_is_refused() -> None:
    """What is free is reported beside what is needed; where nothing must be sent, no room is needed."""
    check_room("bench", BOARD, 1_000_000)
    check_room("bench", replace(BOARD, free_bytes=0), 0)
    with pytest.raises(DeviceError, match=r"bench: 47\.7 MiB are free there, .* are needed"):
        check_room("bench", BOARD, 49_000_000)


@OVER_ADB
@pytest.mark.parametrize(
    ("library", "option", "platform", "told"),
    [
        ("/usr/lib/libOpenCL.so.1", (), None, "backend, for /usr/lib/libOpenCL.so.1 is there"),
        (None, ("--opencl",), None, "backend, as --opencl asks"),
        (None, (), "QUALCOMM", "backend, for its profile names the platform QUALCOMM"),
        (None, (), None, "no OpenCL is there, so the bundle is without its backend\n"),
    ],
)
def test_setup_says_why_a_bundle_has_the_opencl_backend(
    bench: LinkedBoard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Streams,
    library: str | None,
    option: tuple[str, ...],
    platform: str | None,
    told: str,
) -> None:
    """What the board has, an option and the profile decide; the bundle that is made is as was said."""
    orders: list[BundleOrder] = []

    def make_bundle(order: BundleOrder, *_: object) -> Bundle:
        orders.append(order)
        folder = plant_bundle(tmp_path / "bundle")
        return Bundle(folder=folder, manifest=read_manifest(folder))

    monkeypatch.setattr("perfsuite.cli.devices_setup.make_bundle", make_bundle)
    home = str(bench.home / _HOME)
    board = replace(BOARD, opencl_loader=library)
    monkeypatch.setattr("perfsuite.cli.devices_setup.look_at_board", lambda *_: (board, home))
    if platform is not None:
        profile = tmp_path / "devices" / "bench.toml"
        profile.write_text(f'opencl_platform = "{platform}"\n' + profile.read_text())
    assert main(["devices", "setup", "bench", *option]) == 0
    assert told in capsys.readouterr()[1]
    assert [each.has_opencl for each in orders] == [not told.startswith("no OpenCL")]
