"""Real runs in fresh processes, and the ways in which a process can fail."""

from __future__ import annotations

import os
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.pipes import Lost, ProcessPipes
from perfsuite.measure.board.watching import DEVICE_SAMPLES, WAS_THROTTLED
from perfsuite.measure.launch import pinning, publishing_processors, run_worker
from perfsuite.measure.plan import (
    IndependentPlan,
    LlamaPlan,
    OperatorsPlan,
    Plan,
    ShapesPlan,
    dump_record,
)
from perfsuite.records.engine_columns import evaluations_of, thread_operators
from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import misaligned_evaluations, replicate_samples
from perfsuite.workload.projector import find_projector
from perfsuite.workload.weights import materialize, resolve

from .conftest import Child, is_gone, spans_of, wait_until

#: Long enough that no test waits for its end.
FOREVER_S = 600


def record_of(plan: LlamaPlan, **changes: Any) -> EngineRecord:
    return EngineRecord.from_plain(run_worker(replace(plan, **changes))["engine"])


def test_each_evaluation_has_an_end_for_each_timed_operator_within_its_phase(small_plan: LlamaPlan) -> None:
    """The callback recorder loses nothing; launch, entry and ends follow one another within one span, on one clock."""
    record = record_of(small_plan, n_repetitions=2)
    found = evaluations_of(record)
    assert len(found) == 2 * (1 + small_plan.n_gen)
    assert misaligned_evaluations(record) == 0
    assert record.n_dropped == 0
    assert set(found.graph.tolist()) == {0, 1}
    spans = [span for span in record.spans if span.phase in (Phase.PREFILL, Phase.DECODE)]
    for number, (span, *entry) in enumerate(zip(spans, found.launch_ns, found.first_start_ns, strict=True)):
        assert entry[1] != NOTHING
        times = (span.start_ns, *entry, *found.ends_ns[found.ends(number)], span.end_ns)
        assert list(times) == sorted(times)


def test_a_model_that_only_the_engine_knows_is_recorded(small_plan: LlamaPlan, tmp_path: Path) -> None:
    """Operators are there by the engine's own names: the file is the small one, under another architecture's name."""
    path = tmp_path / "odd.gguf"
    renamed = Path(small_plan.gguf_path).read_bytes().replace(b"llama", b"gemma")
    tokenizer = b"tokenizer.ggml.model" + struct.pack("<IQ", gguf.GGUFValueType.STRING, 5)  # which stays as it is
    path.write_bytes(renamed.replace(tokenizer + b"gemma", tokenizer + b"llama"))
    assert resolve(str(path), cache_dir=tmp_path).known_architecture is None
    samples = replicate_samples(record_of(small_plan, gguf_path=str(path)))
    assert {"embd", "inp_scaled", "ffn_geglu", "result_output"} <= set(samples.operator_ns[Phase.DECODE])
    assert samples.phase_ns[Phase.EMBEDDING] > 0


@pytest.mark.parametrize("n_depth", [0, 40])
def test_every_phase_is_timed_at_its_tokens(small_plan: LlamaPlan, n_depth: int) -> None:
    record = record_of(small_plan, n_depth=n_depth)
    tokens = {phase: [span.token for span in spans_of(record, phase)] for phase in Phase}
    first = n_depth + small_plan.n_prompt
    decoded = list(range(first, first + small_plan.n_gen))
    assert tokens[Phase.LOAD] == [0]
    assert tokens[Phase.PREFILL] == tokens[Phase.END_TO_END] == [n_depth]
    assert tokens[Phase.DECODE] == decoded
    assert tokens[Phase.COPY] == tokens[Phase.SOFTMAX] == tokens[Phase.SAMPLING] == [first - 1, *decoded]
    assert len(evaluations_of(record)) == 1 + small_plan.n_gen


@pytest.mark.parametrize("recorder", ["none", "cb_eval"])
def test_other_recorders_leave_phases_alone(small_plan: LlamaPlan, tmp_path: Path, recorder: str) -> None:
    """Without a recorder, and with the naive one, there are spans, of an image as well, and no operators."""
    record = record_of(_with_image(small_plan, "tiny-clip-f16", tmp_path), recorder=recorder)
    assert record.graphs == ()
    assert len(evaluations_of(record)) == thread_operators(record).size == 0
    assert len(spans_of(record, Phase.DECODE)) == small_plan.n_gen
    assert len(spans_of(record, Phase.ENCODE_IMAGE)) == 1


@pytest.mark.parametrize(
    "changes", [{"recorder": "preload", "n_gen": 64}, {"inject_op": "MUL_MAT", "inject_ratio": 1.0}]
)
def test_no_event_is_lost(small_plan: LlamaPlan, changes: dict[str, Any]) -> None:
    """Of a generation of 64 tokens, nor with every product slowed by its own time: evaluations stay aligned."""
    record = record_of(small_plan, **changes)
    assert record.n_dropped == 0
    assert "recorder" in changes or misaligned_evaluations(record) == 0


def test_an_injected_slowdown_shows_in_its_operator(small_plan: LlamaPlan) -> None:
    plain, slowed = (
        replicate_samples(record_of(small_plan, inject_op=op, inject_ratio=20.0)) for op in (None, "ffn_gate")
    )
    assert slowed.operator_ns[Phase.DECODE]["ffn_gate"] > plain.operator_ns[Phase.DECODE]["ffn_gate"]


@pytest.mark.parametrize(("n_prompt", "n_gen", "phase"), [(0, 2, Phase.DECODE), (3, 0, Phase.PREFILL)])
def test_a_scenario_may_lack_a_phase(small_plan: LlamaPlan, n_prompt: int, n_gen: int, phase: Phase) -> None:
    record = record_of(small_plan, n_prompt=n_prompt, n_gen=n_gen)
    assert {span.phase for span in record.spans} & {Phase.PREFILL, Phase.DECODE} == {phase}


@pytest.mark.parametrize("damage", ["cut", "text", "missing"])
def test_a_file_that_cannot_be_loaded_is_one_line(small_plan: LlamaPlan, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.gguf"
    whole = Path(small_plan.gguf_path).read_bytes()
    if damage != "missing":
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"no GGUF " * 99)
    with pytest.raises(MeasurementError) as caught:
        record_of(small_plan, gguf_path=str(path))
    assert str(caught.value).startswith(f"{path}: llama.cpp cannot load it: ")
    assert "\n" not in str(caught.value)


def test_sequences_are_read_in_turn_and_generated_together(small_plan: LlamaPlan) -> None:
    """Each prompt is an evaluation, each decode step one of a token of every sequence, each token a choice."""
    record = record_of(small_plan, n_sequences=3, n_depth=8)
    assert [span.n_tokens for span in spans_of(record, Phase.PREFILL)] == [16] * 3
    assert [(span.token, span.n_tokens) for span in spans_of(record, Phase.DECODE)] == [(24 + at, 3) for at in range(4)]
    assert len(spans_of(record, Phase.SAMPLING)) == 3 + 4 * 3
    assert (misaligned_evaluations(record), record.n_dropped) == (0, 0)


@pytest.mark.parametrize(("acceptance_ratio", "places"), [(0.0, range(16, 28)), (1.0, range(16, 28, 4))])
@pytest.mark.parametrize("has_model", [True, False])
def test_a_round_gives_what_passes_and_one_token_more(
    small_plan: LlamaPlan, acceptance_ratio: float, places: range, has_model: bool
) -> None:
    """Each round begins where the one before ended; only a draft with a model has phases of its own."""
    asked = {"n_draft": 3, "acceptance_ratio": acceptance_ratio, "n_gen": 12}
    record = record_of(small_plan, **asked, draft_path=small_plan.gguf_path if has_model else None)
    rounds, drafts = (spans_of(record, phase) for phase in (Phase.DECODE, Phase.DRAFT))
    assert [(span.token, span.n_tokens) for span in rounds] == [(at, 4) for at in places]
    assert [(span.token, span.n_tokens) for span in drafts] == [(at, 3) for at in places if has_model]
    assert len(spans_of(record, Phase.DRAFT_PREFILL)) == has_model
    assert len(evaluations_of(record)) == 1 + len(rounds)  # the recorder sees the target alone
    assert misaligned_evaluations(record) == 0


@pytest.mark.long
def test_what_passes_is_drawn_by_the_seed(small_plan: LlamaPlan) -> None:
    """Equal seeds draw equal rounds, repetition by repetition; others draw others."""
    asked = {"n_draft": 3, "acceptance_ratio": 0.5, "n_gen": 40, "n_repetitions": 2}
    first, again, other = (
        [span.token for span in spans_of(record_of(small_plan, **asked, seed=seed), Phase.DECODE)] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first[: len(first) // 2] == first[len(first) // 2 :]


def _with_image(plan: LlamaPlan, name: str, cache_dir: Path, *, text: Path | None = None) -> LlamaPlan:
    """Return a plan with a synthetic projector, of the plan's model or of another."""
    model = resolve(str(text or plan.gguf_path), cache_dir=cache_dir)
    projector = find_projector(name, model, cache_dir=cache_dir)
    path = materialize(projector.weights, cache_dir=cache_dir)
    return replace(plan, mmproj_path=str(path), image_size=projector.image_size)


@pytest.mark.parametrize(("name", "n_tokens"), [("tiny-clip-f16", 16), ("tiny-siglip-q8_0", 4)])
@pytest.mark.parametrize("flash_attn", [True, False])
def test_an_image_is_encoded_before_each_prompt(
    small_plan: LlamaPlan, tmp_path: Path, name: str, n_tokens: int, flash_attn: bool
) -> None:
    """It is a phase of its own, whose operators are recorded on thread 0; the text's stay what they were."""
    plan = replace(_with_image(small_plan, name, tmp_path), flash_attn=flash_attn, n_repetitions=2)
    record = record_of(plan)
    images, prompts, wholes = (spans_of(record, each) for each in (Phase.ENCODE_IMAGE, Phase.PREFILL, Phase.END_TO_END))
    assert [(span.repetition, span.n_tokens) for span in images] == [(0, n_tokens), (1, n_tokens)]
    for image, prompt, whole in zip(images, prompts, wholes, strict=True):
        assert whole.start_ns <= image.start_ns < image.end_ns <= prompt.start_ns
    assert (misaligned_evaluations(record), record.n_dropped) == (0, 0)
    found = replicate_samples(record)
    roles = found.operator_ns[Phase.ENCODE_IMAGE]
    assert {"ffn_up", "ffn_down", "attn_out", "layer_inp_normed"} <= roles.keys()
    assert 0 < sum(roles.values()) <= found.phase_ns[Phase.ENCODE_IMAGE]
    plain = replicate_samples(record_of(replace(plan, mmproj_path=None)))
    for phase in (Phase.PREFILL, Phase.DECODE):
        assert found.operator_ns[phase].keys() == plain.operator_ns[phase].keys()


def test_a_projector_that_cannot_be_used_is_one_line(small_plan: LlamaPlan, tmp_path: Path) -> None:
    """One of another width, a text's model and a cut file are known from libmtmd, with both files."""
    fitting = _with_image(small_plan, "tiny-clip-f16", tmp_path)
    other = materialize(resolve("pythia-70m-l1-q8_0", cache_dir=tmp_path), cache_dir=tmp_path)
    cut = tmp_path / "cut.gguf"
    whole = Path(fitting.mmproj_path or "").read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    for plan in (
        _with_image(small_plan, "tiny-clip-f16", tmp_path, text=other),
        replace(fitting, mmproj_path=small_plan.gguf_path),
        replace(fitting, mmproj_path=str(cut)),
        replace(fitting, mmproj_path="/nowhere.gguf"),
    ):
        with pytest.raises(MeasurementError) as caught:
            run_worker(plan)
        assert str(caught.value).startswith(f"{plan.mmproj_path}: ")
        assert "\n" not in str(caught.value)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draft_path": "/nowhere.gguf", "n_draft": 2}, r"/nowhere.gguf: llama.cpp cannot load it"),
        ({"engine_build_id": "0" * 16}, r"holds build [0-9a-f]{16}, the plan was made for 0{16}"),
        ({"type_v": "q8_0", "flash_attn": False}, r"cannot make a context of 256 tokens: .*flash_attn"),
    ],
)
def test_a_plan_that_cannot_be_run_is_told(small_plan: LlamaPlan, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasurementError, match=message) as caught:
        record_of(small_plan, **changes)
    assert "\n" not in str(caught.value)


def test_a_model_larger_than_the_memory_is_refused_before_it_is_read(small_plan: LlamaPlan, tmp_path: Path) -> None:
    """Both figures are in the line; the file is hollow, so that reading it would end otherwise."""
    path = tmp_path / "huge.gguf"
    path.write_bytes(Path(small_plan.gguf_path).read_bytes())
    os.truncate(path, 1 << 42)
    with pytest.raises(MeasurementError, match=r"huge\.gguf: has 4096\.0 GiB, of memory there are \d+\.\d GiB; take a"):
        record_of(small_plan, gguf_path=str(path))


@pytest.mark.long
def test_a_cache_larger_than_the_memory_is_the_engines_own_error(small_plan: LlamaPlan) -> None:
    """Nothing swaps: the engine is handed out no more than there is, and says what it asked for."""
    with pytest.raises(MeasurementError, match=r"cannot make a context of 2000000256 tokens: "):
        record_of(small_plan, n_depth=2_000_000_000)


def test_a_prompt_beyond_the_batch_does_not_take_the_suite_down(small_plan: LlamaPlan) -> None:
    """What llama.cpp asserts kills the worker, and is an error here."""
    with pytest.raises(MeasurementError, match="killed by SIGABRT"):
        record_of(small_plan, n_prompt=20, n_batch=8, n_ubatch=8)


PLAN = IndependentPlan(n_threads=2, working_set_bytes=1, budget_ms=1)


def test_a_worker_that_runs_on_is_stopped_with_its_children(child: Child, tmp_path: Path) -> None:
    pid_path = tmp_path / "pid"
    child(f"sleep {FOREVER_S} & echo $! > {pid_path}; wait")
    told = r"'independent' was still running after 1 s and was stopped \(its limit is 1 s\); use a smaller"
    with pytest.raises(MeasurementError, match=told):
        run_worker(PLAN, limit_s=1.0)
    assert wait_until(lambda: is_gone(int(pid_path.read_text())))


def test_an_interrupt_takes_the_worker_with_it(child: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_path = tmp_path / "pid"
    child(f"echo $$ > {pid_path}; exec sleep {FOREVER_S}")

    received = ProcessPipes.received

    def interrupted(pipes: ProcessPipes, left_s: float) -> dict[str, Any] | Lost | None:
        if left_s < FOREVER_S:  # what the program is asked before and after
            return received(pipes, left_s)
        while not (pid_path.exists() and pid_path.read_text().strip()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(ProcessPipes, "received", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_worker(PLAN)
    assert wait_until(lambda: is_gone(int(pid_path.read_text())))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo Traceback; echo 'ValueError: no'; exit 1", r"'independent' wrote no record: ValueError: no"),
        ("echo noise; echo 'perfsuite-worker-failed: no device'; echo more; exit 1", r"^no device$"),
        ("printf cut > $record", r"the worker's record .*"),
    ],
)
def test_a_worker_without_a_record_is_told_with_its_reason(child: Child, script: str, message: str) -> None:
    """A marked line is the reason; without one it is the last line that was printed."""
    child(script)
    with pytest.raises(MeasurementError, match=message):
        run_worker(PLAN)


def test_a_worker_gets_its_plan_and_the_environment(child: Child, tmp_path: Path) -> None:
    (tmp_path / "answer").write_bytes(dump_record("independent", {"rates": []}))
    told = tmp_path / "told"
    child(f"(grep -ao independent $plan; echo $ADDED $HOME) > {told}; cp {tmp_path / 'answer'} $record")
    assert run_worker(PLAN, extra_environment={"ADDED": "yes"}) == {"rates": []}
    assert told.read_text() == f"independent\nyes {os.environ['HOME']}\n"


OPERATORS = OperatorsPlan(
    library_dir="/lib",
    engine_build_id="0123456789abcdef",
    cache_dir="/cache",
    n_threads=2,
    shapes=(),
    budget_ns=1,
    spread_bytes=1,
)
SHAPES = ShapesPlan(subject="ggml-cpu", n_threads=2, log_dir="/logs", binds_threads=True)


@pytest.mark.parametrize(
    ("plan", "variables", "expected"),
    [
        (OPERATORS, {}, {"OMP_PROC_BIND": "true", "OMP_PLACES": "{4},{6}"}),
        (replace(OPERATORS, n_threads=3), {}, {}),
        (replace(OPERATORS, binds_threads=False), {}, {}),
        (OPERATORS, {"OMP_PLACES": "cores"}, {}),
        (SHAPES, {}, {"OMP_PROC_BIND": "true", "OMP_PLACES": "{4},{6}"}),
        (replace(SHAPES, binds_threads=False), {}, {}),
    ],
)
def test_operators_run_with_their_threads_where_the_engine_has_them(
    plan: Plan, variables: dict[str, str], expected: dict[str, str]
) -> None:
    """With as many threads as processors each has its own, as in a run of a whole model, unless a variable says not."""
    assert pinning(plan, [4, 6], variables) == expected


@pytest.mark.parametrize(
    ("n_missing", "binds_threads", "keeps_off"), [(0, True, True), (1, True, False), (0, False, False)]
)
def test_publishing_keeps_off_a_driver_that_is_bound(
    n_missing: int, binds_threads: bool, keeps_off: bool, small_plan: LlamaPlan
) -> None:
    """With a processor bound for each thread, the publisher has all but the first; else all of them are free to it."""
    plan = replace(small_plan, n_threads=2 - n_missing, binds_threads=binds_threads)
    assert publishing_processors(plan, frozenset({3, 5})) == frozenset({5} if keeps_off else ())


def test_the_sentinels_run_after_the_engine(small_plan: LlamaPlan) -> None:
    payload = run_worker(small_plan)
    own = {"engine", "contention", "base_memory", "peak_rss_bytes", "sentinels", "pid"}
    assert set(payload) == own | {DEVICE_SAMPLES, WAS_THROTTLED}
    assert min(payload["sentinels"].values()) > 0
    assert payload["contention"]["wall_ns"] > 0
    assert Path(small_plan.gguf_path).stat().st_size < payload["peak_rss_bytes"] < 2**40
