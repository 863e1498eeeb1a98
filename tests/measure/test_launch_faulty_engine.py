"""Engines that misbehave: what a user sees of each, from a library that comes before llama.cpp's own functions."""

from __future__ import annotations

import re
import resource
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.launch import KEPT_BYTES, refuse_killed, run_worker
from perfsuite.measure.native import build_program
from perfsuite.measure.plan import BindingPlan, LlamaPlan, TurnsPlan
from perfsuite.records.engine_columns import DECODE_ROW, OUTPUT_DTYPE, PREFILL_ROW
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.verdict.outputs import other_outputs, output_errors

from .conftest import spans_of

HERE = LocalBoard(cache_dir=Path("nowhere"))

SOURCE = Path(__file__).parent / "faulty_engine.cpp"

Faulty = Callable[..., Mapping[str, str]]


@pytest.fixture(scope="session")
def faulty(engine: Engine, engine_cache: Path) -> Faulty:
    """Return the environment of a worker whose engine has a fault, from the call of a number of ``llama_decode`` on."""
    library = build_program(
        "libfaulty_engine.so",
        [SOURCE],
        Path(engine.include_dirs[0]),
        engine_cache,
        extra=engine.include_flags,
        links=("-ldl",),
        identity=engine.build_id,
        is_library=True,
    )

    def environment(fault: str, *, at: int = 0, mib: int = 0) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(library), "FAULT": fault, "FAULT_FROM": str(at), "FAULT_MIB": str(mib)}

    return environment


def in_turns(
    plan: LlamaPlan, old: Mapping[str, str], new: Mapping[str, str], *, n_turns: int = 2, leader: int = 0
) -> list[EngineRecord]:
    plans = (TurnsPlan(llama=plan), TurnsPlan(llama=plan))
    payloads = HERE.run_in_turns(plans, n_turns=n_turns, leader=leader, own_environments=(old, new))
    return [EngineRecord.from_plain(payload["engine"]) for payload in payloads]


FAULTS = [
    ("abort", 1, r"was killed by SIGABRT: GGML_ASSERT\(false\) failed; the engine or a driver crashed: measure"),
    ("segv", 1, r"was killed by SIGSEGV: it printed nothing; the engine or a driver crashed: measure another build"),
    ("exit", 1, r"wrote no record: it printed nothing"),
    ("status", 1, r"^llama_decode of \d+ tokens returned -3"),
    ("nan", 1, r"^llama\.cpp's logits at place \d+ are not finite numbers; check the model's file"),
    ("idle", 0, r"^llama\.cpp computed nothing: it returned from 16 tokens at place 0 without an operator; measure"),
    ("idle", 3, r"^llama\.cpp computed nothing: it returned from 1 tokens at place 16 without an operator; measure"),
    ("short", 0, r"^llama\.cpp computed nothing: it returned from 16 tokens at place 0 without an operator; measure"),
    ("short", 4, r"^llama\.cpp computed nothing: it returned from 1 tokens at place \d+ without an operator; measure"),
]


@pytest.mark.parametrize(("fault", "at", "message"), FAULTS)
def test_a_fault_is_one_line(small_plan: LlamaPlan, faulty: Faulty, fault: str, at: int, message: str) -> None:
    with pytest.raises(MeasurementError, match=message) as caught:
        run_worker(small_plan, extra_environment=faulty(fault, at=at))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("fault", "at", "message"), [each for each in FAULTS if each[0] not in ("segv", "exit")])
def test_a_fault_of_the_new_side_ends_a_pair(
    small_plan: LlamaPlan, faulty: Faulty, fault: str, at: int, message: str
) -> None:
    """A pair with such an engine is the same error: an engine that computes nothing is not faster than the old one."""
    message = message.replace("16 tokens", r"\d+ tokens").replace("place 16", r"place \d+")
    with pytest.raises(MeasurementError, match=message):
        in_turns(small_plan, {}, faulty(fault, at=at))


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("fault", "at"),
    [
        ("", 0),
        *((each, 0) for each in ("norm", "rope", "activation", "scale", "columns", "rows", "projection")),
        *((each, 1) for each in ("half", "stale", "token")),
    ],
)
def test_other_outputs_are_seen(small_plan: LlamaPlan, faulty: Faulty, fault: str, at: int) -> None:
    """An engine that leaves a part of the model or of the prompt out computes something else; its like does not."""
    old, new = in_turns(replace(small_plan, seed=7), {}, faulty(fault, at=at))
    problem = other_outputs([output_errors(old, new)])
    assert ("compute different outputs" in (problem or "")) == bool(fault)
    assert len({old.outputs[at : at + 264] for at in range(0, len(old.outputs), 264)}) == 4  # each turn's prompt is new


@pytest.mark.long_but_first
@pytest.mark.parametrize("fault", ["", "norm", "rope", "columns"])
def test_other_outputs_beneath_the_binding_are_seen(small_plan: LlamaPlan, faulty: Faulty, fault: str) -> None:
    """Two engines beneath llama-cpp-python are compared by the same rule, and read a text only once."""
    plans: Any = (BindingPlan(llama=small_plan, has_sentinels=False),) * 2
    payloads = HERE.run_in_turns(plans, n_turns=2, leader=0, own_environments=({}, faulty(fault)))
    old, new = (EngineRecord.from_plain(payload["engine"]) for payload in payloads)
    assert ("compute different outputs" in (other_outputs([output_errors(old, new)]) or "")) == bool(fault)
    rows = np.frombuffer(old.outputs, OUTPUT_DTYPE)
    assert rows["phase"].tolist() == [PREFILL_ROW, DECODE_ROW] * 2
    assert len({row.tobytes() for row in rows["values"]}) == 4
    assert len(old.chosen_tokens) == 4 * 2 * (small_plan.n_gen + 1)


def test_no_prompt_comes_twice(small_plan: LlamaPlan, faulty: Faulty) -> None:
    """An engine that knows a prompt of before gains nothing: none is repeated, neither in pairs nor alone."""
    in_turns(replace(small_plan, seed=7), faulty("repeat"), faulty("repeat"), n_turns=4)
    run_worker(replace(small_plan, n_repetitions=3), extra_environment=faulty("repeat"))


def test_comparing_outputs_evaluates_no_token(small_plan: LlamaPlan, faulty: Faulty) -> None:
    """A turn evaluates its warm-up, prompt and steps, and nothing more for what is compared."""
    n_evaluated = 2 * (2 + 1 + small_plan.n_gen)
    in_turns(small_plan, {}, faulty("status", at=n_evaluated))
    with pytest.raises(MeasurementError, match="returned -3"):
        in_turns(small_plan, {}, faulty("status", at=n_evaluated - 1))


def test_a_library_from_elsewhere_ends_a_run(small_plan: LlamaPlan, tmp_path: Path) -> None:
    """A copy of one of the build's libraries, which RUNPATH or the environment brings in, is named and not measured."""
    own = Path(small_plan.library_dir) / "libggml-base.so"
    copy = tmp_path / find_engine(own.parent).library("libggml-base").name
    shutil.copy(own, copy)
    with pytest.raises(MeasurementError, match=rf"libggml-base\.so was loaded from {copy}, not from there; RUNPATH"):
        run_worker(small_plan, extra_environment={"LD_PRELOAD": str(copy)})


@pytest.mark.parametrize("fault", ["stdout", "closed"])
def test_what_an_engine_prints_breaks_no_protocol(small_plan: LlamaPlan, faulty: Faulty, fault: str) -> None:
    for record in in_turns(small_plan, faulty(fault), faulty(fault), leader=1):
        assert len(spans_of(record, Phase.DECODE)) == 2 * small_plan.n_gen


def test_a_flood_of_words_leaves_the_last_ones(small_plan: LlamaPlan, faulty: Faulty) -> None:
    """Of 64 MiB on the standard error without the end of a line 64 KiB are kept, the last words among them."""
    with pytest.raises(MeasurementError, match="SIGABRT: last words;"):
        run_worker(small_plan, extra_environment=faulty("stderr", mib=64))
    with pytest.raises(MeasurementError, match="SIGABRT: last words;"):
        in_turns(small_plan, {}, faulty("stderr", mib=64))


@pytest.mark.long
def test_gigabytes_of_words_take_no_memory(small_plan: LlamaPlan, faulty: Faulty) -> None:
    """Of 4 GiB no more is kept than of 64 MiB: the process that reads them stays below 128 MiB more than before."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MeasurementError, match="SIGABRT: last words;"):
        run_worker(small_plan, extra_environment=faulty("stderr", mib=4096))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 128 * 1024
    assert KEPT_BYTES < 1 << 20


@pytest.mark.long
def test_an_engine_without_memory_is_one_line(small_plan: LlamaPlan, faulty: Faulty) -> None:
    """An engine that takes all memory meets the limit that the worker has set itself, and not the machine's end."""
    limited = faulty("memory")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, hard))
    try:
        with pytest.raises(MeasurementError, match=r"bad_alloc") as caught:
            run_worker(small_plan, extra_environment=limited)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert "\n" not in str(caught.value)


def test_an_engine_that_the_kernel_kills_for_its_memory_is_one_line(small_plan: LlamaPlan, faulty: Faulty) -> None:
    told = r"^memory limit of 1073741824 bytes: the kernel stopped the run, which needs more"
    try:
        with pytest.raises(MeasurementError, match=told):
            HERE.run(small_plan, extra_environment=faulty("memory"), beside=Beside(memory_limit_bytes=1 << 30))
    except AssertionError as error:
        if "memory limit: " in str(error.__cause__ or error):  # this machine lets nobody limit memory
            pytest.skip(str(error))
        raise


def test_a_driver_that_prints_more_does_not_hide_which_call_failed() -> None:
    """The line has ggml's words on the call, not the last words of the driver's own handler."""
    call = "ggml_opencl: clEnqueueReadBuffer(queue, data) error -5 at ggml-opencl.cpp:4321"
    output = f"{call}\nggml-opencl.cpp:4321: GGML_ASSERT(0) failed\nPLEASE submit a bug report\n"
    with pytest.raises(MeasurementError, match=f"was killed by SIGABRT: {re.escape(call)}; the engine or a driver"):
        refuse_killed(-signal.SIGABRT, output, "llama")
