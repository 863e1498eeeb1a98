"""What the tests of the ``perfsuite`` command share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.cli.answer import Answer, give
from tests.plain_runs import plain_run_of

Streams = pytest.CaptureFixture[str]
Refused = Callable[[list[str]], str]


@pytest.fixture
def refused(capsys: Streams) -> Refused:
    """Run a command that must fail for a reason that a user can act on; return its one line."""

    def run(arguments: list[str]) -> str:
        capsys.readouterr()
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("perfsuite: error: ")
        assert err.count("\n") == 1
        return err

    return run


def printed(answer: Answer, capsys: Streams) -> str:
    capsys.readouterr()
    give(answer, argparse.Namespace(json=False))
    return capsys.readouterr().out


def plain_of(answer: Answer) -> Any:
    return json.loads(json.dumps(answer.plain(), allow_nan=False))


def write_phase_run(folder: Path, workload: str, **samples_ns: list[int]) -> Path:
    """Write the run.json of a run of phases, as far as what reads latencies looks at it."""
    cases = (
        {"id": f"phase/{workload}/{phase}", "outcome": "pass", "samples_ns": samples}
        for phase, samples in samples_ns.items()
    )
    fingerprint = {"soc": "A", "threads": "2", "flash_attn": "on", "kv_types": "f16/f16"}
    plain = plain_run_of(
        *cases, workload=workload, subject={"llama": "llama.cpp b9"}, fingerprint={"llama": fingerprint}
    )
    path = folder / "run.json"
    path.write_text(json.dumps(plain))
    return path


@pytest.fixture
def phase_run(tmp_path: Path) -> Path:
    """A run of two replicates whose weights are of the catalogue."""
    samples = {"embedding": [1, 1], "prefill": [15_999_999, 31_999_999], "decode": [10_000_000, 10_000_000]}
    return write_phase_run(tmp_path, "smollm2-135m-q8_0/p16-g4", **samples)
