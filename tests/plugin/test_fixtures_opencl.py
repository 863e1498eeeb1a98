"""``perf.opencl``: a kernel of a test's own is timed by its events, checked, judged and stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_device import HostRuns
from tests.measure.opencl_children import visible_opencl

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "test_saxpy.py"


def test_the_example_is_judged_and_stored(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each kernel has a sample a round; one whose check says no is INVALID and leaves no reference."""
    for name, value in {**visible_opencl(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    text = EXAMPLE.read_text("utf-8")
    wrong = text.replace("return np.allclose", "return not np.allclose").replace("saxpy/", "wrong/")
    pytester.makepyfile(test_saxpy=text, test_wrong=wrong)
    options = ("--device=host", "--perf-replicates=3", "--baseline=record", "-k", "saxpy", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options, ".", timeout=120)
    if "LogicError: clGetPlatformIDs" in (said := result.stdout.str()):
        pytest.skip("no OpenCL device")
    assert result.ret == 0, said
    result.stdout.fnmatch_lines_random(["*saxpy/n1048576-group16/f32 * new*", "*its check says so*"])
    (entry,) = json.loads((pytester.path / "baselines" / "host" / "opencl.json").read_text())["entries"]
    assert "opencl_driver" in entry["fingerprint"]
    (session,) = entry["sessions"]
    ids = [f"opencl/saxpy/n1048576-group{group}/f32" for group in (16, 64)]
    assert {case_id: len(samples) for case_id, samples in session["cases"].items()} == dict.fromkeys(ids, 3)


def test_a_queue_that_does_not_profile_is_one_line(runs: HostRuns) -> None:
    runs.pytester.makepyfile("""
        from types import SimpleNamespace

        def test_saxpy(perf):
            perf.opencl(SimpleNamespace(properties=0), None, (1,), None, name="saxpy")
    """)
    result = runs(str(runs.pytester.path))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["opencl/saxpy: its queue does not profile; make it with properties=pyopencl.*"])
