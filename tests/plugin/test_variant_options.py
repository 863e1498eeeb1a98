"""What a run does beside a model alone: how it is asked for, and what does not go together."""

from __future__ import annotations

import pytest

from perfsuite.experiments.binding.measurement import is_asked
from perfsuite.experiments.engine_replicates import graph_settings
from perfsuite.experiments.run_config import RunConfig
from perfsuite.plugin.options import resolve_config
from tests.fake_device import FakeDevice

MODEL = "--model=smollm2-135m-l2-q8_0"


def asked(pytester: pytest.Pytester, *arguments: str) -> RunConfig:
    """Resolve the options of a run on the host."""
    return resolve_config(pytester.parseconfig("--device=host", MODEL, *arguments))


def test_an_adapter_is_a_setting_of_the_workload(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Its rank is what a baseline is known by; without one the baseline is what it always was."""
    plain, adapted = asked(pytester), asked(pytester, "--lora-rank=8")
    assert adapted.workload.settings.lora_rank == 8
    assert graph_settings(adapted) == {**graph_settings(plain), "lora_rank": "8"}


@pytest.mark.parametrize("option", ["--lora-rank=8"])
def test_the_binding_runs_a_model_alone(pytester: pytest.Pytester, fake_device: FakeDevice, option: str) -> None:
    """The binding has no cases where the driver does more than it."""
    assert (is_asked(asked(pytester)), is_asked(asked(pytester, option))) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--lora-rank=0",), "*--lora-rank=0: expected an integer from 1 to 65536"),
        (("--lora-rank=8", "--perf-overhead"), "*--lora-rank=8: --perf-overhead runs a model alone; leave out one *"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    pytester: pytest.Pytester, fake_device: FakeDevice, arguments: tuple[str, ...], told: str
) -> None:
    """The line names the option, its value and what is expected."""
    result = pytester.runpytest_inprocess("--device=host", MODEL, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])
