"""The options that say what a run writes beside its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.experiments.output_request import OutputRequest
from perfsuite.plugin.options import resolve_config
from tests.fake_device import FakeDevice

MODEL = "--model=smollm2-135m-l2-q8_0"


@pytest.mark.parametrize(
    ("arguments", "writes_report", "history"),
    [
        ((), True, ".perfsuite/history"),
        (("--perf-report=off",), False, ".perfsuite/history"),
        (("--perf-report=on", "--perf-history=nightly"), True, "nightly"),
        (("--perf-history=off",), True, None),
    ],
)
def test_what_was_asked_for(
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    arguments: tuple[str, ...],
    writes_report: bool,
    history: str | None,
) -> None:
    """A report and the rootdir's history unless an option says otherwise."""
    config = pytester.parseconfig("--device=host", MODEL, *arguments)
    outputs = resolve_config(config).outputs
    folder = None if history is None else Path(config.rootpath) / history
    assert outputs == OutputRequest(writes_report=writes_report, history_dir=folder)


def test_a_report_is_on_or_off(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Anything else is refused in one line that names both."""
    result = pytester.runpytest_inprocess("--device=host", MODEL, "--perf-report=html")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--perf-report: invalid choice: 'html' (choose from *on*off*)"])


@pytest.mark.parametrize("address", ["s3://farm/history", "https://farm/history", "file:///farm/history"])
def test_a_history_at_an_address_is_refused(pytester: pytest.Pytester, fake_device: FakeDevice, address: str) -> None:
    """What is no folder would become one of that name below this one."""
    result = pytester.runpytest_inprocess("--device=host", MODEL, f"--perf-history={address}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--perf-history={address}: is an address, expected a folder of this machine*"])
    assert not [each for each in pytester.path.iterdir() if each.name.endswith(":")]


def test_a_folder_may_have_a_colon_in_its_name(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Only what begins like an address is one."""
    config = pytester.parseconfig("--device=host", MODEL, "--perf-history=a:/b")
    assert resolve_config(config).outputs.history_dir == Path.cwd() / "a:/b"
