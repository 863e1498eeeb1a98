"""The commands that tools/kills.py kills: what each begins with, does, and leaves to be seen.

All run in the current folder, whose `cache` is the user's and whose `tmp` is the system's. What takes minutes or other
machines is stood in for: compilers by copies of one library, pytest of a night by a program that leaves a run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from perfsuite.cli import main
from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import PerfsuiteError
from perfsuite.measure.bundle import engine_build, making
from perfsuite.measure.engine_store import open_store
from perfsuite.measure.llama_plan import adapter_weights
from perfsuite.nightly import night_plan, night_state
from perfsuite.records.bundle import check_bundle
from perfsuite.records.whole_file import file_digest
from perfsuite.report.history import open_history
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_run
from perfsuite.verdict.baseline import plain_entry, read_baselines
from perfsuite.verdict.changes import approvals_path
from perfsuite.workload.weights import materialize, resolve

#: A library of this machine that stands for any.
LIBRARY = Path("library.so")

#: What is named for a moment or by chance: it differs from one run to the next.
_CHANCE = re.compile(r"[0-9a-f]{32}|\d{8}T\d{6}Z(-\d+)?|\d{4}-\d\d-\d\d(T[\d:.+]+)?")

#: What is kept on purpose, is merged or not, or is Python's own trial of a folder.
_KEPT = re.compile(
    r"^history/\w+/[^.][^/]+$|^cache/perfsuite/logs|\.attempt-\d+|^tmp/[a-z0-9_]{8}$|__pycache__|^starts$"
)

Seen = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that changes files."""

    #: Makes what is there before.
    prepare: Callable[[], None]
    #: Runs it; returns its exit code.
    run: Callable[[], int]
    #: Returns what a reader finds; raises where something is damaged.
    see: Callable[[], Seen]
    #: Whether all that it writes appears at once.
    is_one_step: bool = True
    #: Runs it again after a cut; as the first time, where there is none.
    again: Callable[[], int] | None = None


def age() -> None:
    """Let work folders be of long ago: only then is known that nobody uses one of another machine."""
    for path in Path().rglob(".perfsuite-work-*"):
        os.utime(path, (0, 0), follow_symlinks=False)


def listing() -> list[str]:
    """Return the names of all that is in the current folder, without what is of chance in them."""
    names = {_CHANCE.sub("*", path.as_posix()) for path in Path().rglob("*") if not _KEPT.search(path.as_posix())}
    return sorted(names)


def _prepare_baselines(n_runs: int = 2) -> None:
    whole = json.loads(write_run(synthetic_run(n_cases=12, against=None), Path("whole")).read_text())
    shutil.rmtree("whole")
    for day in range(1, n_runs + 1):
        told = {"samples_ns": [1000 + day, 1001, 1002], "outcome": "new"}
        cases = [
            {**whole["cases"][0], "id": name, "kind": name.partition("/")[0], **told}
            for name in ("phase/a-q8_0/siso/decode", "kernel/add/n8/f32")
        ]
        plain = {
            **whole,
            "started_at": f"2025-01-{day:02}T00:00:00+00:00",
            "device": "host",
            "workload": "a-q8_0/siso",
            "fingerprint": {"llama": {"soc": "A"}, "kernels": {"soc": "A"}},
            "cases": cases,
        }
        Path(f"run-{day}.json").write_text(json.dumps(plain))
    if n_runs > 1:
        main(["baseline", "record", "run-1.json"])


def _see_baselines() -> Seen:
    seen: Seen = {}
    for name in ("a-q8_0", "kernels"):
        stored = read_baselines(Path("baselines/host", f"{name}.json"))
        if stored.entries:
            plain = json.dumps([plain_entry(each) for each in stored.entries], sort_keys=True)
            seen[stored.path.name] = _CHANCE.sub("*", plain)
        text = approvals_path(stored.path)
        if text.exists():
            seen[text.name] = _CHANCE.sub("*", text.read_text())
    return seen


def _prepare_history(n_added: int, n_new: int) -> None:
    for seed in range(n_added + n_new):
        at = datetime(2026, 3, 1 + seed, 2, tzinfo=timezone.utc).isoformat()
        run = synthetic_run(n_cases=12, seed=seed, started_at=at, against=None)
        write_run(run, Path("added" if seed < n_added else "runs") / str(seed))
    if n_added:
        main(["history", "add", "added", "--history=history"])


def _see_history() -> Seen:
    history = open_history(Path("history"))
    rows = history.rows("SELECT run_id, case_id, measured_ns FROM history ORDER BY ALL")
    if history.skipped:
        raise PerfsuiteError(history.skipped[0].text)
    return {f"{run} {case}": ns for run, case, ns in rows}


#: Stands for pytest: leaves the run of a cell, and a line for each start.
_STUB = """
import sys, time
from pathlib import Path
told = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[1:])
folder = Path(told["perf-dir"])
with open("starts", "a") as out:
    out.write(told["perf-model"] + "\\n")
(folder / "run.json").write_text(
    '{"schema": 1, "interrupted": false, "cases": [{"id": "phase/decode", "outcome": "pass"}]}')
Path(told["junitxml"]).write_text(
    '<testsuites><testsuite name="pytest" tests="0" failures="0" errors="0"/></testsuites>')
"""


def _prepare_night() -> None:
    Path("plan.toml").write_text(
        'schema = 1\nmodels = ["one", "two"]\nscenarios = ["siso"]\n[[board]]\ndevice = "host"\n'
    )
    Path("stub.py").write_text(_STUB)


def _night(*more: str) -> int:
    from perfsuite.cli import nightly

    night_plan.refuse_unknown_model = lambda _: None  # type: ignore[assignment]
    program = (sys.executable, "-S", str(Path("stub.py").absolute()))
    real = nightly.Night
    nightly.Night = lambda *words, **named: real(*words, program=program, **named)  # type: ignore[assignment, misc]
    return main(["nightly", "plan.toml", "-o", "nights", *more])


def _night_again() -> int:
    has_night = any(Path("nights").glob(f"2*/{night_state.STATE_NAME}"))
    return _night(*(["--resume"] if has_night else []))


def _see_night() -> Seen:
    nights = sorted(Path("nights").glob(f"2*/{night_state.STATE_NAME}"))
    plain = json.loads(nights[-1].read_text()) if nights else {"cells": {}}
    seen: Seen = {key: end["ending"] for key, end in plain["cells"].items()}
    if nights and (nights[-1] / "summary.md").exists():
        seen["summary"] = True
    return seen


def _plant_build(folder: Path) -> None:
    for name in ("libllama", "libggml", "libggml-base", "libggml-cpu"):
        (folder / "lib").mkdir(parents=True, exist_ok=True)
        (folder / "lib" / f"{name}.so").write_text(f"{name} of {folder}" * 1000)
    (folder / "include").mkdir()
    for name in ("llama.h", "ggml.h"):
        (folder / "include" / name).write_text(name)


def _prepare_engines() -> None:
    for name in ("old", "build"):
        _plant_build(Path(name))
    main(["engines", "keep", "old"])


def _prepare_import() -> None:
    _prepare_engines()
    main(["engines", "keep", "build"])
    kept = open_store(user_cache()).entries()
    main(["engines", "export", next(each.engine_id for each in kept if each.engine_id != _first_id()), "engine.tgz"])
    shutil.rmtree(user_cache() / "engines")
    main(["engines", "keep", "old"])


def _first_id() -> str:
    return open_store(user_cache()).entries()[0].engine_id


def _see_engines() -> Seen:
    store = open_store(user_cache())
    for each in store.entries():
        store.folder_of(each.engine_id)
    if store.damaged():
        raise PerfsuiteError(f"{store.damaged()[0]}: is damaged")
    seen: Seen = {each.engine_id: each.n_bytes for each in store.entries()}
    for path in Path().glob("engine.tgz"):
        with tarfile.open(path) as archive:
            seen[path.name] = sorted((each.name, each.size) for each in archive if archive.extractfile(each))
    return seen


def _export() -> int:
    return main(["engines", "export", _first_id(), "engine.tgz"])


def _write_weights() -> int:
    weights = resolve("tiny-llama-q8_0", cache_dir=Path("cache/models"))
    materialize(weights, cache_dir=Path("cache/models"))
    adapter_weights(weights, 8, cache_dir=Path("cache/models"))
    return 0


def _see_weights() -> Seen:
    return {path.name: file_digest(path) for path in sorted(Path("cache/models").glob("*.gguf"))}


def _plant_checkout() -> None:
    for name in ("CMakeLists.txt", "include/llama.h", "ggml/include/ggml.h", "src/llama.cpp"):
        Path("checkout", name).parent.mkdir(parents=True, exist_ok=True)
        Path("checkout", name).write_text(name)


def _stub_compilers() -> None:
    def compile_engine(order: Any, work: Path, build: Path, log: Path, tell: Any) -> None:
        (build / "bin").mkdir(parents=True)
        for name in engine_build.ENGINE_LIBRARIES:
            shutil.copyfile(LIBRARY, build / "bin" / f"{name}.so.0")

    def build_parts(parts: Any, toolchain: Any, work: Path, log: Path, tell: Any) -> None:
        for _, to in parts:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(LIBRARY, to)

    # a bundle is known by the suite's own sources, too, which somebody may edit meanwhile
    making.source_root = lambda _: Path("checkout").absolute()  # type: ignore[attr-defined]
    engine_build._compile = compile_engine
    engine_build._tool = lambda name: name
    making.build_parts = build_parts  # type: ignore[attr-defined]
    making.build_obstacle = lambda _: "none is made here"  # type: ignore[attr-defined]


def _bundle() -> int:
    _stub_compilers()
    return main(["bundle", "--llama=checkout", "-o", "out", "--quiet"])


def _see_bundles() -> Seen:
    found = {path.name: path for path in Path("cache/perfsuite/bundles").glob("[!.]*-*") if path.is_dir()}
    found |= {"out": Path("out")} if Path("out").exists() else {}
    return {name: check_bundle(path).digest for name, path in found.items()}


COMMANDS = {
    "baseline record": Command(
        prepare=_prepare_baselines,
        run=lambda: main(["baseline", "record", "run-2.json"]),
        see=_see_baselines,
        is_one_step=False,
    ),
    "baseline record, the first": Command(
        prepare=lambda: _prepare_baselines(1),
        run=lambda: main(["baseline", "record", "run-1.json"]),
        see=_see_baselines,
        is_one_step=False,
    ),
    "baseline approve": Command(
        prepare=_prepare_baselines,
        run=lambda: main(["baseline", "approve", "run-2.json", "--reason=the new kernel pads its rows"]),
        see=_see_baselines,
        is_one_step=False,
    ),
    "history add": Command(
        prepare=lambda: _prepare_history(2, 3),
        run=lambda: main(["history", "add", "runs", "--history=history"]),
        see=_see_history,
        is_one_step=False,
    ),
    "history compact": Command(
        prepare=lambda: _prepare_history(4, 0),
        run=lambda: main(["history", "compact", "--history=history"]),
        see=_see_history,
    ),
    "nightly": Command(prepare=_prepare_night, run=_night, see=_see_night, is_one_step=False, again=_night_again),
    "bundle": Command(prepare=_plant_checkout, run=_bundle, see=_see_bundles, is_one_step=False),
    "engines keep": Command(prepare=_prepare_engines, run=lambda: main(["engines", "keep", "build"]), see=_see_engines),
    "engines export": Command(prepare=_prepare_engines, run=_export, see=_see_engines),
    "engines import": Command(
        prepare=_prepare_import, run=lambda: main(["engines", "import", "engine.tgz"]), see=_see_engines
    ),
    "weights": Command(prepare=lambda: None, run=_write_weights, see=_see_weights, is_one_step=False),
}
