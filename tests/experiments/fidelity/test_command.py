"""``perfsuite fidelity``, with nothing measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.cli.answer import show
from perfsuite.errors import OpenClError
from perfsuite.experiments.fidelity.command import fidelity_parts
from perfsuite.experiments.fidelity.command_published import run_published
from perfsuite.experiments.fidelity.experiment import FidelityRequest
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.measure.plan import DevicesPlan
from perfsuite.testing.workers import replace_workers
from tests.command_streams import Streams
from tests.conftest import Golden
from tests.synthetic_fidelity import row


def test_what_is_outside_of_rounding_is_told(capsys: Streams) -> None:
    """A sentence for each row that rounding does not explain, and the means."""
    assert run_published(argparse.Namespace(json=False)) == 0
    lines = capsys.readouterr().out.splitlines()
    (at,) = (number for number, line in enumerate(lines) if line.startswith("34 of 44 rows"))
    told = [line for line in lines[at + 1 :] if line.startswith("  ")]
    assert "  phases, gemma-2-2b-it, prefill: accuracy 99.99 %, the latencies give 99.9992 to 99.9992, as if" in told[3]
    assert any("Google Pixel 7, softmax, chunk_lse: accuracy 99.39 % is not that of its" in line for line in told)
    assert lines[-3] == "in 48 of 60 rows the printed accuracy is that of the printed scaled error"
    assert lines[-2].endswith("mean of the printed rows 97.11 %, stated 96.82 %, outside rounding")


def test_all_rows_are_shown_with_what_falls_short(capsys: Streams, golden: Golden) -> None:
    """Errors below 100 µs are in whole ns; long and short kernels have a mean each, and none below 10 µs is shown."""
    long, short = "kernel/add/count8/f32", "kernel/add/count2/f32"
    rows = (
        row("decode", 1_001_000, 10**6, n=72),
        row("prefill", 1_100_000, 10**6),
        row("copy", 10_455, 10_000),
        row(long, 199_000, 200_000, interval_ns=(150_000, 250_000), beside_ns={"occupied_ns": 123_000}),
        row(f"{long}-b", 190_000, 200_000, note="500 duplicates of 1000"),
        row(f"{long}-c", None, None, problem="no memory"),
        row(short, 19_000, 20_000),
        row(f"{short}-b", 900, 1_000),
    )
    conditions = {"governor": "none", "clocks": "not locked"}
    problems = ("phases: disturbed",)
    run = FidelityRun(device="host", platform="A device", conditions=conditions, rows=rows, problems=problems)
    show(*fidelity_parts(run))
    lines = (line.rstrip() for line in capsys.readouterr().out.splitlines())
    golden("cli/fidelity.txt", "\n".join(lines) + "\n")


GOOD = (
    row("decode", 10**6, 10**6),
    row("kernel/add/count8/f32", 199_000, 200_000),
    row("decode", 99.0, 100.0, kind=FidelityKind.OPERATORS),
)


@dataclass
class Recorder:
    rows: tuple[FidelityRow, ...] = GOOD
    problems: tuple[str, ...] = ()
    requests: list[FidelityRequest] = field(default_factory=list)
    looked_for: list[str | None] = field(default_factory=list)

    def look_for(self, plan: DevicesPlan, *, extra_environment: dict[str, str], **_: object) -> dict[str, Any]:
        assert extra_environment is not None
        self.looked_for.append(plan.platform)
        if plan.platform != "pocl":
            raise OpenClError(f"OpenCL: expected a platform named like {plan.platform!r}")
        return {}

    def record(self, request: FidelityRequest, announce: Callable[[str], None]) -> FidelityRun:
        self.requests.append(request)
        announce("a step")
        return FidelityRun(
            device="host", platform=None, conditions={"clocks": "locked"}, rows=self.rows, problems=self.problems
        )


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> Recorder:
    found = Recorder()
    monkeypatch.setattr("perfsuite.experiments.fidelity.command.record_fidelity", found.record)
    replace_workers(monkeypatch, found.look_for)
    return found


def test_json_is_all_that_is_printed(recorder: Recorder, capsys: Streams) -> None:
    assert main(["fidelity", "--json"]) == 0
    out, err = capsys.readouterr()
    plain = json.loads(out)
    assert next(iter(plain)) == "schema"
    assert [len(plain[kind.value]) for kind in FidelityKind] == [1, 1, 1]
    assert err == "fidelity: a step\n"


@pytest.mark.parametrize(
    ("rows", "problems", "status"),
    [
        (GOOD, (), 0),
        (GOOD, ("kernels: no memory",), 1),
        ((row("decode", 2 * 10**6, 10**6),), (), 1),
        ((row("decode", None, None),), (), 1),
        ((row("decode", 50.0, 100.0, kind=FidelityKind.OPERATORS),), (), 0),
    ],
    ids=["good", "not measured", "not accurate", "unknown", "no limit"],
)
def test_the_exit_code_says_whether_the_limits_are_met(
    recorder: Recorder, rows: tuple[FidelityRow, ...], problems: tuple[str, ...], status: int
) -> None:
    recorder.rows, recorder.problems = rows, problems
    assert main(["fidelity"]) == status


def test_options_are_passed_on(recorder: Recorder) -> None:
    options = "--model smollm2-135m-l2-q8_0 --scenario p8-g2 --threads 3 --opencl-platform pocl --rounds 7"
    main(["fidelity", *options.split(), "--kernel-budget", "0.5", "--kernel", "gemv_f16", "--no-uprobes"])
    for kind in FidelityKind:
        main(["fidelity", f"--{kind.value}-only"])
    request, *of_a_kind = recorder.requests
    assert recorder.looked_for == ["pocl"]
    assert request.workload.prefix == "smollm2-135m-l2-q8_0/p8-g2"
    assert (request.n_threads, request.opencl_platform, request.n_rounds) == (3, "pocl", 7)
    assert (request.kernel_budget_ns, request.with_uprobes) == (500_000_000, False)
    assert request.case_ids == ("kernel/gemv_f16/m1536-k576/f16", "kernel/gemv_f16/m2048-k2048/f16")
    assert [each.kinds for each in of_a_kind] == [{kind} for kind in FidelityKind]
