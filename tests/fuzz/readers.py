"""Every reader of the suite by name: how it is called, of what form its files are, its seeds, and how they are written.

A reader's seeds are the files below ``corpus/<name>``, with what the fuzzing has found, and files of ``tests/data``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite import __version__
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.probe.readings import read_lines as read_survey
from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.expectation.roofline.published import read_published
from perfsuite.expectation.roofline.roofline_run import read_roofline, write_roofline
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.experiments.certificate.certificate import append_trial, certificate, read_trials
from perfsuite.experiments.fidelity.command_published import published_fidelity
from perfsuite.experiments.learnt_mapping import _stored as stored_mapping
from perfsuite.experiments.said_graphs import _read as kept_graphs
from perfsuite.experiments.shapes.kept import read_examples, read_kept, write_examples
from perfsuite.experiments.shapes.policy_record import read_policy, write_policy
from perfsuite.experiments.shapes.sweep_record import read_sweep, write_sweep
from perfsuite.experiments.study.harness_scores import read_harness_score
from perfsuite.experiments.study.plan_file import read_plan as read_study_plan
from perfsuite.measure.board.frames import Frames
from perfsuite.measure.bundle.elf import read_needs
from perfsuite.measure.ceiling_store import calibration_path, find_calibration
from perfsuite.measure.engine_store import read_entry
from perfsuite.measure.phase_tracer import read_trace as read_phase_trace
from perfsuite.measure.plan import SCHEMA as PLAN_SCHEMA
from perfsuite.measure.plan import dump_plan, dump_record, load_plan, load_record
from perfsuite.nightly.night_plan import read_plan as read_night_plan
from perfsuite.nightly.night_state import NightOrigin, read_state, write_state
from perfsuite.records.benchmark_files import read_benchmark
from perfsuite.records.bundle import BundledFile, content_digest, read_manifest, write_manifest
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.codec import pack, plain_json, unpack
from perfsuite.records.counts import read_counts, read_own_counts, read_rows, write_counts
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.engine_columns import evaluations_of, experts_of, splits_of, thread_operators
from perfsuite.records.events import EngineRecord
from perfsuite.records.job import read_answer, read_job, write_job
from perfsuite.records.live import from_line, to_line
from perfsuite.records.llama_bench import read_llama_bench, write_llama_bench
from perfsuite.records.memory_timeline import MemoryTimeline
from perfsuite.records.observation import read_observation, write_observation
from perfsuite.records.opencl_log_file import read_opencl_log
from perfsuite.records.run_file import read_run_file
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.records.trace_file import HEAD, MAGIC, BlockKind, block_head, read_trace, write_trace
from perfsuite.records.whole_file import write_json
from perfsuite.report.history.append import append_run, run_rows
from perfsuite.report.history.reader import open_history
from perfsuite.report.llama_bench_export import read_measured_phases
from perfsuite.report.run_writer import write_run
from perfsuite.trace.recording import read_recording
from perfsuite.verdict.baseline import read_baselines, write_baselines
from perfsuite.verdict.recorded_run import read_run
from perfsuite.workload.config_metadata import spec_of_config
from perfsuite.workload.gguf_metadata import read_gguf
from perfsuite.workload.model_shape import read_spec
from perfsuite.workload.prompts import prompts_text, read_prompts
from perfsuite.workload.shapes.shape_case import ShapeCase

from .mutation import Form, Mutator

DATA = Path(__file__).parent.parent / "data"
FORMATS = DATA / "formats"
CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One reader."""

    form: Form
    #: Reads the file at a path.
    read: Callable[[Path], Any]
    #: Writes what was read to the same path, so that it is read as the same.
    write: Callable[[Any, Path], object] | None = None
    #: What it raises for what is none beside a `PerfsuiteError`, as its docstring says.
    refusal: type[Exception] = PerfsuiteError
    #: What the file is called in its folder, and what else lies there.
    name: str = "file"
    beside: Path | None = None
    #: Files of ``tests/data`` that it begins with, beside those of the corpus.
    seeds: tuple[str, ...] = ()
    #: Whether it starts threads, which set aside more memory than they use.
    has_threads: bool = False
    #: Makes hashes right again after a change, where they hide everything else.
    seal: Callable[[bytes], bytes] = lambda content: content
    #: Another way to change a content, which is used every other time.
    change: Callable[[Mutator, bytes, bytes], bytes] | None = None


def seeds(name: str) -> dict[str, bytes]:
    """Return the files with which the fuzzing of a reader begins, by name; what it has found is among them."""
    given = {each: (DATA / each).read_bytes() for each in READERS[name].seeds}
    found = sorted((CORPUS / name).glob("*"))
    return {**given, **{path.relative_to(CORPUS).as_posix(): path.read_bytes() for path in found}}


def _plain(path: Path) -> Any:
    return plain_json(path, MeasurementError, "measure again")


# what was sealed by a hash


def _manifest_sealed(content: bytes) -> bytes:
    with suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        plain = json.loads(content)
        files = [BundledFile(**each) for each in plain["files"]]
        return json.dumps({**plain, "digest": content_digest(files)}).encode("utf-8", "surrogatepass")
    return content


def _answer_sealed(content: bytes) -> bytes:
    with suppress(ValueError, RecursionError, KeyError, TypeError, AttributeError):
        plain = unpack(content)
        return pack({**plain, "sha256": hashlib.sha256(plain["message"]).hexdigest()})
    return content


def _plan_sealed(content: bytes) -> bytes:
    """Make a plan or a record one of this version, so that it stays a seed."""
    with suppress(ValueError, RecursionError, TypeError):
        return pack({**unpack(content), "schema": PLAN_SCHEMA, "suite_version": __version__})
    return content


def _blocks(content: bytes) -> list[bytes]:
    """Return the kind and the payload of each block of a trace."""
    found, at = [], len(MAGIC)
    while at + HEAD.size <= len(content):
        kind, _, n_bytes = HEAD.unpack_from(content, at)
        found.append(kind + content[at + HEAD.size : at + HEAD.size + n_bytes])
        at += HEAD.size + n_bytes
    return found


def _joined(blocks: list[bytes]) -> bytes:
    kinds = {kind.value: kind for kind in BlockKind}
    known = ((kinds[each[:4]], each[4:]) for each in blocks if each[:4] in kinds)
    return MAGIC + b"".join(block_head(kind, payload) + payload for kind, payload in known)


def _trace_sealed(content: bytes) -> bytes:
    return _joined(_blocks(content)) if content.startswith(MAGIC) else content


def _trace_changed(mutator: Mutator, content: bytes, other: bytes) -> bytes:
    """Change one block of a trace within, or the order of blocks."""
    blocks, given = _blocks(content), _blocks(other)
    if not blocks or not given:
        return mutator.changed(content, other)
    place = mutator.one_of(range(len(blocks)))
    within = Mutator(Form.BINARY if blocks[place][:4] in (b"EVNT", b"CNTR", b"EXPT") else Form.MESSAGE_PACK, place)
    within._draw = mutator._draw
    match mutator.one_of(range(8)):
        case 0:
            del blocks[place]
        case 1:
            blocks.insert(place, mutator.one_of(given))
        case 2:
            blocks.append(blocks.pop(place))
        case _:
            blocks[place] = blocks[place][:4] + within.changed(blocks[place][4:], mutator.one_of(given)[4:])
    return _joined(blocks)


# readers that need more than the path


def _night(path: Path) -> Any:
    plan = read_night_plan(FORMATS / "night.toml")
    return read_state(path.parent, plan, NightOrigin(commit="0" * 40, suite_version="1"))


def _write_night(ends: Any, path: Path) -> None:
    plan = read_night_plan(FORMATS / "night.toml")
    write_state(path.parent, plan, ends, NightOrigin(commit="0" * 40, suite_version="1"))


def _lock(path: Path) -> Any:
    try:
        return LockOwner.from_plain(json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        return None


def _lines(path: Path) -> Any:
    records = (from_line(line) for line in path.read_bytes().split(b"\n") if line)
    return [each for each in records if each is not None]


def _write_lines(records: Any, path: Path) -> None:
    path.write_text("\n".join(to_line(each) for each in records), "utf-8")


def _calibration(path: Path) -> Any:
    place = calibration_path({"soc": "A"}, "build", 2, path.parent)
    place.parent.mkdir(exist_ok=True)
    shutil.copy(path, place)
    return find_calibration({"soc": "A"}, "build", 2, path.parent)


def _write_calibration(kept: Calibration, path: Path) -> None:
    write_json(path, kept.to_plain(), MeasurementError)


def _write_trials(trials: Any, path: Path) -> None:
    path.unlink()
    path.touch()
    for each in trials:
        append_trial(path, each)


def _certificate(path: Path) -> Any:
    return certificate(read_trials(path))


def _examples(path: Path) -> Any:
    """Read the examples, and what they name."""
    folder = path.parent / "device" / "shapes"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder / "x.json")
    examples = read_examples(path)
    read_kept(path.parent, "device")
    return sorted(examples, key=repr)


def _rows(path: Path) -> Any:
    return run_rows(read_run_file(path))


def _history(path: Path) -> Any:
    """Add the run to a history, and ask for what was added."""
    run = read_run_file(path)
    folder = path.parent / "history"
    shutil.rmtree(folder, ignore_errors=True)
    append_run(run, folder)
    return _asked(folder)


def _parquet(path: Path) -> Any:
    return _asked(path.parent)


def _asked(folder: Path) -> Any:
    history = open_history(folder)
    return history.rows("SELECT * FROM history ORDER BY case_id, run_id"), len(history.skipped)


def _messages(path: Path) -> Any:
    return list(Frames(limit_bytes=1 << 20).messages(path.read_bytes()))


def _worker_plan(path: Path) -> Any:
    return load_plan(path.read_bytes())


def _write_worker_plan(plan: Any, path: Path) -> None:
    path.write_bytes(dump_plan(plan))


def _engine_record(path: Path) -> Any:
    """Read what a worker recorded of the engine, and its columns."""
    record = EngineRecord.from_plain(load_record(path.read_bytes(), "llama").get("engine"))
    for columns in (evaluations_of, thread_operators, splits_of, experts_of):
        columns(record)
    return record


def _scores(path: Path) -> Any:
    return read_harness_score([path], "arc_easy", "acc_norm")


READERS: Mapping[str, Reader] = {
    "run": Reader(
        form=Form.JSON,
        name="run.json",
        read=read_run_file,
        write=lambda run, path: write_run(run, path.parent),
        seeds=("formats/run.json", "formats/run-oldest.json"),
    ),
    "run-recorded": Reader(form=Form.JSON, read=read_run, seeds=("formats/run.json", "formats/run-oldest.json")),
    "run-phases": Reader(form=Form.JSON, read=read_measured_phases, seeds=("formats/run.json",)),
    "run-rows": Reader(form=Form.JSON, read=_rows, seeds=("formats/run.json",)),
    "observation": Reader(
        form=Form.JSON,
        name="observation.json",
        read=lambda path: read_observation(path.parent),
        write=lambda seen, path: write_observation(seen, path.parent),
        seeds=("formats/observed/observation.json", "formats/observed-oldest/observation.json"),
    ),
    "baselines": Reader(
        form=Form.JSON,
        read=read_baselines,
        write=lambda kept, _: write_baselines(kept),
        seeds=("formats/baseline-1.json", "formats/baseline-2.json", "formats/baseline-2-of-an-engine.json"),
    ),
    "llama-bench": Reader(
        form=Form.JSON,
        read=read_llama_bench,
        write=lambda runs, path: write_llama_bench(runs, path, form="json"),
        seeds=("llama-bench.json",),
    ),
    "llama-bench-lines": Reader(
        form=Form.JSON_LINES,
        read=read_llama_bench,
        write=lambda runs, path: write_llama_bench(runs, path, form="jsonl"),
        seeds=("llama-bench.jsonl",),
    ),
    "llama-bench-sql": Reader(
        form=Form.TEXT,
        read=read_llama_bench,
        seeds=("llama-bench.sql", "field/old.sql", "field/apostrophe.sql", "field/two-runs-appended.csv"),
    ),
    "llama-bench-sqlite": Reader(form=Form.BINARY, read=read_llama_bench),
    "backend-ops": Reader(
        form=Form.TEXT,
        read=read_benchmark,
        seeds=("field/bandwidth.sql", "field/test-mode.sql", "field/before-backends.json", "field/before.md"),
    ),
    "backend-ops-sqlite": Reader(form=Form.BINARY, read=read_benchmark),
    "gguf": Reader(form=Form.BINARY, read=read_gguf, name="tiny.gguf"),
    "device": Reader(
        form=Form.TEXT,
        name="fast-board.toml",
        beside=FORMATS / "devices",
        read=lambda path: find_profile(path.stem, folders=[path.parent]),
        seeds=("formats/devices/fast-board.toml", "formats/devices/base-board.toml"),
    ),
    "trace": Reader(
        form=Form.BINARY,
        read=read_trace,
        write=lambda trace, path: write_trace(path, trace, overwrites=True),
        seeds=("formats/trace.pstrace",),
        seal=_trace_sealed,
        change=_trace_changed,
    ),
    "ebpf-log": Reader(
        form=Form.BINARY,
        name="ebpf.bpflog",
        beside=CORPUS / "ebpf-origin",
        read=lambda path: read_recording(path.parent),
    ),
    "ebpf-origin": Reader(
        form=Form.JSON, name="origin.json", beside=CORPUS / "ebpf-log", read=lambda path: read_recording(path.parent)
    ),
    "opencl-log": Reader(form=Form.BINARY, read=read_opencl_log),
    "phase-trace": Reader(form=Form.BINARY, read=read_phase_trace),
    "bundle-manifest": Reader(
        form=Form.JSON,
        name="manifest.json",
        read=lambda path: read_manifest(path.parent),
        write=lambda manifest, path: write_manifest(path.parent, manifest),
        seal=_manifest_sealed,
    ),
    "job": Reader(
        form=Form.JSON,
        name="job.json",
        read=lambda path: read_job(path.parent),
        write=lambda job, path: write_job(path.parent, job),
    ),
    "job-answer": Reader(form=Form.MESSAGE_PACK, read=lambda path: read_answer(path, "a request"), seal=_answer_sealed),
    "link-messages": Reader(form=Form.BINARY, read=_messages),
    "worker-plan": Reader(form=Form.MESSAGE_PACK, read=_worker_plan, write=_write_worker_plan, seal=_plan_sealed),
    "worker-record": Reader(
        form=Form.MESSAGE_PACK,
        read=lambda path: load_record(path.read_bytes(), "llama"),
        seeds=("smollm2-135m-l2-q8_0-siso.msgpack",),
        seal=_plan_sealed,
    ),
    "engine-record": Reader(
        form=Form.MESSAGE_PACK,
        read=_engine_record,
        write=lambda record, path: path.write_bytes(dump_record("llama", {"engine": record.to_plain()})),
        seeds=("smollm2-135m-l2-q8_0-siso.msgpack",),
        seal=_plan_sealed,
    ),
    "shape-id": Reader(form=Form.TEXT, read=lambda path: ShapeCase.from_id(path.read_text("utf-8", "replace"))),
    "kept-shapes": Reader(
        form=Form.JSON,
        read=_examples,
        write=lambda examples, path: write_examples(path, examples),
        seeds=("formats/shapes.json",),
    ),
    "shape-policy": Reader(
        form=Form.JSON,
        read=read_policy,
        write=lambda policy, path: write_policy(policy, path),
        seeds=("formats/policy.json",),
    ),
    "shape-sweep": Reader(
        form=Form.JSON,
        read=read_sweep,
        write=lambda sweep, path: write_sweep(sweep, path),
        seeds=("formats/sweep.json",),
    ),
    "counts": Reader(form=Form.JSON, read=read_counts, write=lambda work, path: write_counts(path, work)),
    "own-counts": Reader(form=Form.JSON, read=read_own_counts, write=lambda own, path: write_counts(path, own)),
    "count-rows": Reader(form=Form.BINARY, read=read_rows),
    "roofline": Reader(
        form=Form.JSON,
        read=read_roofline,
        write=lambda run, path: write_roofline(run, path),
        seeds=("formats/roofline.json",),
    ),
    "roofline-published": Reader(form=Form.JSON, read=read_published, seeds=("formats/published.json",)),
    "fidelity-published": Reader(form=Form.JSON, read=published_fidelity, seeds=("formats/fidelity.json",)),
    "trials": Reader(form=Form.JSON_LINES, read=read_trials, write=_write_trials, seeds=("formats/trials.jsonl",)),
    "certificate": Reader(form=Form.JSON_LINES, read=_certificate, seeds=("formats/trials.jsonl",)),
    "lm-eval": Reader(form=Form.JSON, read=_scores, seeds=("formats/scores.json", "formats/scores-0.3.json")),
    "study": Reader(form=Form.TEXT, read=read_study_plan, seeds=("formats/study.toml",)),
    "night-plan": Reader(form=Form.TEXT, read=read_night_plan, seeds=("formats/night.toml",)),
    "night-state": Reader(
        form=Form.JSON,
        name="night.json",
        beside=FORMATS / "night",
        read=_night,
        write=_write_night,
        seeds=("formats/night/night.json",),
    ),
    "calibration": Reader(
        form=Form.JSON,
        read=_calibration,
        write=_write_calibration,
        seeds=("formats/calibration.json", "formats/calibration-oldest.json"),
    ),
    "ceilings": Reader(
        form=Form.JSON, read=lambda path: Ceilings.from_plain(_plain(path)), seeds=("formats/ceilings.json",)
    ),
    "prompts": Reader(
        form=Form.TEXT,
        read=read_prompts,
        write=lambda prompts, path: path.write_text(prompts_text(prompts), "utf-8"),
    ),
    "config": Reader(form=Form.JSON, name="config.json", read=spec_of_config),
    "model-spec": Reader(form=Form.TEXT, read=read_spec),
    "live": Reader(form=Form.JSON_LINES, read=_lines, write=_write_lines, seeds=("formats/live.jsonl",)),
    "lock": Reader(form=Form.JSON, read=_lock, seeds=("formats/lock.json",)),
    "survey": Reader(form=Form.TEXT, read=lambda path: read_survey(path.read_text("utf-8", "replace"))),
    "engine-entry": Reader(form=Form.JSON, read=lambda path: read_entry(path.read_bytes(), path)),
    "elf": Reader(form=Form.BINARY, read=read_needs),
    "opencl-mapping": Reader(form=Form.JSON, read=stored_mapping),
    "said-graphs": Reader(form=Form.MESSAGE_PACK, read=kept_graphs),
    "memory": Reader(
        form=Form.JSON, read=lambda path: MemoryTimeline.from_plain(_plain(path)), seeds=("formats/memory.json",)
    ),
    "calls": Reader(
        form=Form.JSON,
        read=lambda path: CallTrace.from_plain(_plain(path)),
        refusal=ValueError,
        seeds=("formats/calls.json",),
    ),
    "duplication": Reader(
        form=Form.JSON,
        read=lambda path: KernelDuplication.from_plain(_plain(path)),
        refusal=ValueError,
        seeds=("formats/duplication.json",),
    ),
    "tensor-layout": Reader(
        form=Form.JSON,
        read=lambda path: TensorLayout.from_plain(_plain(path)),
        refusal=ValueError,
        seeds=("formats/layout.json",),
    ),
    "history-parquet": Reader(form=Form.BINARY, name="run.parquet", read=_parquet, has_threads=True),
    "history-append": Reader(form=Form.JSON, read=_history, has_threads=True, seeds=("formats/run.json",)),
}
