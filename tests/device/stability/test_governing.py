"""Setting governors, telling what could not be set, and giving them back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perfsuite.device.machine import NO_CONDITIONS, Conditions
from perfsuite.device.stability import governing
from perfsuite.device.stability.governing import governed, gpu_governors, processor_governors
from perfsuite.device.stability.restore_file import FILE_NAME
from perfsuite.device.stability.small_files import write_line
from tests.sys_trees import BOARDS, UNREADABLE, UNWRITABLE, governors, plant, put


@pytest.mark.parametrize(
    ("board", "processors", "gpus"),
    [
        ("rubikpi", ["policy0", "policy4", "policy7"], ["3d00000.gpu"]),
        ("orangepi5", ["policy0", "policy4", "policy6"], ["fb000000.gpu"]),
        ("raspberrypi5", ["policy0"], []),
        ("pixel8pro", ["policy0", "policy4", "policy8"], ["1f000000.mali"]),
    ],
)
def test_the_governors_of_a_board(tmp_path: Path, board: str, processors: list[str], gpus: list[str]) -> None:
    """Every group of processors has one; of all that scales only the GPU counts, not memory, storage or an NPU."""
    root = plant(board, tmp_path)
    assert [each.name for each in processor_governors(root)] == processors
    assert [each.name for each in gpu_governors(root)] == gpus


@pytest.mark.parametrize(
    ("name", "is_gpu"),
    [
        ("17000000.gpu", True),
        ("17000000.ga10b", True),
        ("57000000.gpu", True),
        ("3d00000.qcom,kgsl-3d0", True),
        ("kgsl-3d0", True),
        ("ff9a0000.mali", True),
        ("kgsl-busmon", False),
        ("soc:qcom,gpubw", False),
        ("3d6a000.gmu", False),
        ("dmc", False),
        ("fdab0000.npu", False),
    ],
)
def test_a_gpu_is_known_by_its_name(tmp_path: Path, name: str, is_gpu: bool) -> None:
    """Vendors name their GPUs in a few ways; what scales a bus to its memory is none."""
    put(tmp_path, f"sys/class/devfreq/{name}/governor", "simple_ondemand")
    assert [each.name for each in gpu_governors(tmp_path)] == ([name] if is_gpu else [])


def test_a_gpu_is_known_by_its_driver(tmp_path: Path) -> None:
    """A name that says nothing is no obstacle."""
    put(tmp_path, "sys/class/devfreq/fde60000.device/governor", "simple_ondemand")
    put(tmp_path, "sys/bus/platform/drivers/panfrost/bind", "")
    put(tmp_path, "sys/class/devfreq/fde60000.device/device/driver", tmp_path / "sys/bus/platform/drivers/panfrost")
    assert [each.name for each in gpu_governors(tmp_path)] == ["fde60000.device"]


def test_a_gpu_that_two_paths_lead_to_is_one(tmp_path: Path) -> None:
    """Qualcomm's driver shows the same folder in its own class once more."""
    put(tmp_path, "sys/class/devfreq/3d00000.qcom,kgsl-3d0/governor", "msm-adreno-tz")
    put(tmp_path, "sys/class/kgsl/kgsl-3d0/devfreq", tmp_path / "sys/class/devfreq/3d00000.qcom,kgsl-3d0")
    assert [each.name for each in gpu_governors(tmp_path)] == ["3d00000.qcom,kgsl-3d0"]


def test_qualcomms_own_place_is_enough(tmp_path: Path) -> None:
    """Where the kernel's class has nothing, the driver's folder does."""
    put(tmp_path, "sys/class/kgsl/kgsl-3d0/devfreq/governor", "msm-adreno-tz")
    put(tmp_path, "sys/class/kgsl/kgsl-3d0/devfreq/available_governors", "msm-adreno-tz performance")
    (found,) = gpu_governors(tmp_path)
    assert (found.name, found.offered) == ("kgsl-3d0", ("msm-adreno-tz", "performance"))


def test_a_machine_without_control_has_none(tmp_path: Path) -> None:
    """A virtual machine has neither."""
    assert processor_governors(tmp_path) == gpu_governors(tmp_path) == ()


POLICY = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
FAST = Conditions(governor="performance")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.mark.parametrize("board", BOARDS)
def test_a_boards_governors_are_set_and_restored(tmp_path: Path, folder: Path, board: str) -> None:
    root, notes = plant(board, tmp_path / "board"), list[str]()
    before = governors(root)
    with governed(FAST, notes, folder=folder, root=root):
        assert set(governors(root)) == {"performance"}
        kept = json.loads((folder / FILE_NAME).read_text())["changes"]
        assert [each["before"] for each in kept] == before
    assert governors(root) == before
    assert list(folder.iterdir()) == notes == []


def test_the_gpus_governor_is_set_too(tmp_path: Path, folder: Path) -> None:
    """Memory and NPU of the same class keep theirs."""
    root, notes = plant("orangepi5", tmp_path), list[str]()
    with governed(Conditions(gpu_governor="performance"), notes, folder=folder, root=root):
        assert governors(root, "sys/class/devfreq/*/governor") == ["dmc_ondemand", "performance", "rknpu_ondemand"]
        assert set(governors(root)) == {"ondemand"}
    assert governors(root, "sys/class/devfreq/fb*/governor") == ["simple_ondemand"]
    assert notes == []


def test_nothing_asked_changes_nothing(tmp_path: Path, folder: Path) -> None:
    root, notes = plant("rubikpi", tmp_path), list[str]()
    with governed(NO_CONDITIONS, notes, folder=folder, root=root):
        assert set(governors(root)) == {"schedutil"}
        assert not folder.exists()
    assert notes == []
    root = plant("raspberrypi5", tmp_path / "other")
    with governed(Conditions(governor="ondemand"), notes, folder=folder, root=root):
        assert not folder.exists()
    assert (governors(root), notes) == (["ondemand"], [])


def test_without_permission_the_run_goes_on_with_a_note(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    root, notes = plant("rubikpi", tmp_path), list[str]()
    for number in (0, 4, 7):
        put(root, POLICY.replace("policy0", f"policy{number}"), UNWRITABLE)
    with governed(FAST, notes, folder=folder, root=root):
        assert governors(root) == ["Linux"] * 3
    (note,) = notes
    assert note.startswith("governor is 'Linux'; 'performance' cannot be set without root (policy0, policy4, policy7: ")
    assert note.endswith("); times vary more")
    assert not (folder / FILE_NAME).exists()


def test_one_group_that_refuses_does_not_keep_the_others(tmp_path: Path, folder: Path) -> None:
    root, notes = plant("orangepi5", tmp_path), list[str]()
    put(root, POLICY, UNWRITABLE)
    with governed(FAST, notes, folder=folder, root=root):
        assert governors(root) == ["Linux", "performance", "performance"]
    assert governors(root) == ["Linux", "ondemand", "ondemand"]
    assert len(notes) == 1
    assert "(policy0: " in notes[0]


def test_a_governor_that_reads_back_as_another_is_put_back_and_told(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that takes the write and keeps to its own is no success."""
    root, notes = plant("raspberrypi5", tmp_path), list[str]()

    def lying(path: Path, text: str) -> str | None:
        return write_line(path, "interactive" if text == "performance" else text)

    monkeypatch.setattr(governing, "write_line", lying)
    with governed(FAST, notes, folder=folder, root=root):
        assert governors(root) == ["ondemand"]
    assert notes == [
        "governor is 'ondemand'; 'performance' was not taken (policy0: reads 'interactive' after it was set); "
        "times vary more"
    ]


def test_a_governor_that_is_not_offered_is_not_tried(tmp_path: Path, folder: Path) -> None:
    root, notes = plant("pixel8pro", tmp_path), list[str]()
    with governed(Conditions(gpu_governor="performance"), notes, folder=folder, root=root):
        assert governors(root, "sys/devices/platform/*.mali/governor") == ["quickstep"]
    assert notes == [
        "GPU's governor is 'quickstep'; 'performance' is not offered (1f000000.mali: offered are basic quickstep); "
        "times vary more"
    ]


@pytest.mark.parametrize("content", [UNREADABLE, "", Path("/nowhere"), b"\x80", "two words"])
def test_a_governor_that_cannot_be_read_is_not_set(tmp_path: Path, folder: Path, content: Path | str | bytes) -> None:
    """What is not known cannot be restored."""
    root, notes = plant("raspberrypi5", tmp_path), list[str]()
    put(root, POLICY, content)
    with governed(FAST, notes, folder=folder, root=root):
        assert not folder.exists()
    assert len(notes) == 1
    assert "cannot be" in notes[0]


def test_no_control_is_told(tmp_path: Path, folder: Path) -> None:
    """A virtual machine has no clocks to govern, a Raspberry Pi no GPU's."""
    notes = list[str]()
    with governed(Conditions(governor="performance", gpu_governor="performance"), notes, folder=folder, root=tmp_path):
        assert len(notes) == 2
    assert notes[0] == "governor 'performance' cannot be set: no control of the processors' frequency here; " + (
        "times vary more"
    )
    assert "no control of a GPU's frequency here" in notes[1]


def test_without_a_restore_file_nothing_is_changed(tmp_path: Path) -> None:
    """A full disk costs the governor, not the certainty that it is restored."""
    root, notes = plant("raspberrypi5", tmp_path / "board"), list[str]()
    (tmp_path / "full").write_text("")
    with governed(FAST, notes, folder=tmp_path / "full", root=root):
        assert governors(root) == ["ondemand"]
    assert len(notes) == 1
    assert notes[0].startswith("governors are left as they are, for they could not be restored: ")


def test_a_refusal_at_the_end_is_told_and_left_to_the_next_run(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, notes = plant("raspberrypi5", tmp_path), list[str]()
    monkeypatch.setattr("perfsuite.device.stability.restore_file.write_line", lambda *_: "Device or resource busy")
    with governed(FAST, notes, folder=folder, root=root):
        pass
    assert len(notes) == 1
    assert "'ondemand' cannot be restored (Device or resource busy)" in notes[0]
    assert (folder / FILE_NAME).exists()
