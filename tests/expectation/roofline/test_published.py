"""What papers published of devices, as the repository holds it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.point import Roof
from perfsuite.expectation.roofline.published import (
    PublishedDevice,
    published_devices,
    published_dir,
    published_rates,
)
from perfsuite.records.events import Phase

ROOT = Path(__file__).resolve().parents[3]

#: As RooflineBench prints them.
RIDGE_POINTS = {
    "NVIDIA RTX 3090": "38.00",
    "NVIDIA RTX 3070 Ti Laptop": "37.05",
    "Apple M1 Pro": "25.39",
    "Jetson Orin Nano Super 8G": "20.48",
    "Raspberry Pi 5": "8.98",
}


def device(name: str) -> PublishedDevice:
    (found,) = (each for each in published_devices() if each.name == name)
    return found


@pytest.mark.parametrize("name", RIDGE_POINTS)
def test_ridge_points_are_as_printed(name: str) -> None:
    """Theoretical FP32 over theoretical bandwidth gives each ridge point that is printed, to its digits."""
    roof = device(name).roof
    assert roof is not None
    assert f"{roof.ridge_point:.2f}" == RIDGE_POINTS[name]


def test_the_pi_is_printed_in_gflops() -> None:
    """153.60 and 78.56 of them, and 1.48 of FP16; its measured roof is of the bandwidth as printed, not corrected."""
    pi = device("Raspberry Pi 5")
    assert (pi.theoretical_fp32_flops_per_s, pi.measured_fp16_flops_per_s) == (153.6e9, 1.48e9)
    assert pi.measured_roof == Roof(peak_flops_per_s=78.56e9, bandwidth_bytes_per_s=3.98e9)


def test_three_arrays_for_two() -> None:
    """RooflineBench's bandwidths are corrected by 3 / 2, which is 5.97 GB/s for 3.98; no other paper's are."""
    assert device("Raspberry Pi 5").corrected_bandwidth_bytes_per_s == pytest.approx(5.97e9)
    for each in published_devices():
        is_corrected = each.corrected_bandwidth_bytes_per_s is not None
        assert is_corrected is (each.paper == "RooflineBench")


def test_a_latency_is_a_rate_where_its_tokens_are_told() -> None:
    """1.85 s for 32 tokens are 17.3 tokens/s; a prompt of unknown length has no rate."""
    first = next(rate for rate in published_rates() if rate.paper == "LIFE")
    assert (first.phase, first.latency_ns, first.n_tokens) == (Phase.PREFILL, 1_850_000_000, 32)
    assert first.rate_tokens_per_s == pytest.approx(17.297, abs=0.001)
    assert replace(first, n_tokens=None).rate_tokens_per_s is None
    assert replace(first, tokens_per_s=5.0).rate_tokens_per_s == 5.0


def test_a_checkout_comes_before_what_is_installed(tmp_path: Path) -> None:
    """Beside the package lies ``baselines/published`` in a checkout; installed, the files lie within it.

    An editable install's own copy does not hide the checkout's files.
    """
    site, package = tmp_path / "site" / "perfsuite", tmp_path / "perfsuite"
    (tmp_path / "baselines" / "published").mkdir(parents=True)
    with pytest.raises(PerfsuiteError, match=r"not found in .*baselines/published, .*_published"):
        published_dir([package])
    files = ROOT / "baselines" / "published"
    for each in (site, package):
        shutil.copytree(files, each / "_published")
        assert published_dir([each]) == each / "_published"
    checkout = shutil.copytree(files, tmp_path / "baselines" / "published", dirs_exist_ok=True)
    assert published_dir([package]) == published_dir([site, package]) == checkout


def test_the_suite_and_the_wheel_have_the_files() -> None:
    """The repository's files are found, and the build installs the folder to where the lookup expects it."""
    assert published_dir() == ROOT / "baselines" / "published"
    text = (ROOT / "native" / "CMakeLists.txt").read_text(encoding="utf-8")
    assert "baselines/published/ DESTINATION perfsuite/_published" in text
