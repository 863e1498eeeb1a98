"""Cases of the binding: which there are."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from perfsuite.experiments.binding.measurement import binding_cases, is_asked, is_beside_native
from perfsuite.experiments.run_config import KindMargins, Margins


def config(**changes: Any) -> Any:
    scenario = SimpleNamespace(n_prompt=8, n_gen=4, n_depth=0, name="siso")
    workload = SimpleNamespace(scenario=scenario, prefix="tiny/siso", is_alone=True)
    found = {
        "workload": workload,
        "prompt_lengths": (),
        "board": SimpleNamespace(is_local=True),
        "backend": "cpu",
        "is_against": False,
        "is_planned": False,
        "engine": SimpleNamespace(is_packaged=True),
        "margins": Margins(),
    }
    return SimpleNamespace(**{**found, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"board": SimpleNamespace(is_local=False)},
        {"backend": "opencl"},
        {"is_against": True},
        {"is_planned": True},
        {"prompt_lengths": (3, 4)},
        {"workload": SimpleNamespace(**{**vars(config().workload), "is_alone": False})},
        {"engine": SimpleNamespace(is_packaged=False)},
    ],
)
def test_there_are_cases_of_the_packaged_engine_on_this_machine(changes: Mapping[str, Any]) -> None:
    """The binding fits its own libraries alone, and Python is not everywhere."""
    assert is_asked(config())
    assert not is_asked(config(**changes))


def test_cases_name_door_latency_and_part() -> None:
    names = [case.case_id.removeprefix("binding/tiny/siso/") for case in binding_cases(config())]
    assert len(names) == len(set(names)) == 33
    assert {"load", "calls/ttft", "calls/itl/logits", "completion/overhead"} <= set(names)
    assert not {"completion/itl/logits", "calls/itl/tokenize", "completion/itl-p99"} & set(names)
    asked = config(margins=Margins(ini=KindMargins(by_kind_ratio={"percentile": 0.3})))
    assert sum(case.kind == "percentile" for case in binding_cases(asked)) == 4


def test_wholes_follow_the_native_driver() -> None:
    """Parts are work of Python's and of the sampler's own."""
    assert is_beside_native("binding/m/s/calls/itl")
    assert is_beside_native("binding/m/s/calls/ttft/decode")
    assert not is_beside_native("binding/m/s/calls/itl/sampling")
    assert not is_beside_native("binding/m/s/calls/itl-p95")
