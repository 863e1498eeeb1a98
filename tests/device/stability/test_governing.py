"""The governors of a board; `tests/measure/board/test_program.py` sets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.stability.governing import gpu_governors, processor_governors
from tests.sys_trees import plant, put


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
