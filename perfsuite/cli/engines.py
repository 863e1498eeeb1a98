"""``perfsuite engines``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.cli.command_help import Commands, add_command, add_run
from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import EngineError
from perfsuite.measure.engine import find_engine
from perfsuite.measure.engine_store import EngineStore, StoredEngine, open_store
from perfsuite.measure.environment import environment_engine
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_bytes, format_count

#: How a session of a baseline names what made it.
_NAMED = re.compile(r'"engine": *"([0-9a-f]{16})"')


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its own subcommands."""
    parser = add_command(
        commands,
        "engines",
        about="""
        Recording a baseline keeps its build, in your cache or on the board. Later runs measure it beside the new build,
        which shows smaller changes than stored times.
        """,
        examples={
            "perfsuite engines list": "what is kept, and its size",
            "perfsuite engines export 3f2a engine.tgz": "one file for a colleague or a CI cache",
        },
        writes="the store in the cache, and the file of 'export'",
        see=("docs/comparing.md", "perfsuite baseline"),
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    _add_actions(actions)
    for name, run in _RUNS.items():
        add_run(actions.choices[name], run)


def _add_actions(actions: Commands) -> None:
    engine, archive = ("engine ID", "the first letters of the build's id"), "an archive, such as engine.tgz"
    add_command(actions, "list", summary="list the kept builds", examples={"perfsuite engines list --json": "as JSON"})
    add_command(actions, "show", summary="list the files of one build", options=[engine])
    text = "folder of the build (default: the one that a run would measure)"
    add_command(
        actions,
        "keep",
        summary="keep a build of llama.cpp",
        examples={"perfsuite engines keep ~/llama.cpp/build": "your own build"},
        options=[("build [BUILD]", text, Path)],
    )
    options = [engine, ("output FILE", archive, Path)]
    add_command(actions, "export", summary="write a build as one file", options=options)
    options = [("path FILE", archive, Path)]
    add_command(actions, "import", summary="add a build from a file, checked by its hashes", options=options)
    add_command(
        actions,
        "prune",
        summary="remove builds that no baseline names",
        about="A build that a run is using stays.",
        examples={"perfsuite engines prune --keep=2": "keep two more"},
        options=[
            ("--keep N", "also keep the N newest (default 0)", int, 0),
            ("--baseline-dir DIR", "folder of the baselines (default baselines)", Path, Path("baselines")),
        ],
    )


def _list(options: argparse.Namespace) -> int:
    store = open_store(user_cache())
    return give(Answer(parts=_parts(store), plain=list(map(asdict, store.entries()))), options)


def _parts(store: EngineStore) -> Iterator[Part]:
    yield Sheet(
        ("id", "what", "build", "version", "size", "kept"),
        [
            (each.engine_id, each.kind, each.build_id, each.version, format_bytes(each.n_bytes), each.kept_at[:16])
            for each in store.entries()
        ],
    )
    for name in store.damaged():
        yield f"{terminal_text(str(store.folder / name))}: is damaged; remove it"


def _show(options: argparse.Namespace) -> int:
    entry = open_store(user_cache()).find(options.engine)
    parts = (
        f"{entry.engine_id}: {_described(entry)}, kept {entry.kept_at}",
        *(f"  {terminal_text(name)}={terminal_text(value)}" for name, value in entry.settings.items()),
        *(f"  {digest[:16]}  {name}" for name, digest in entry.files.items()),
    )
    return give(Answer(parts=parts, plain=asdict(entry)), options)


def _give_entry(entry: StoredEngine, options: argparse.Namespace, named: str | None = None) -> int:
    return give(Answer(parts=[f"{named or entry.engine_id}: {_described(entry)}"], plain=asdict(entry)), options)


def _keep(options: argparse.Namespace) -> int:
    engine = environment_engine() if options.build is None else find_engine(options.build)
    return _give_entry(open_store(user_cache()).keep_engine(engine), options)


def _export(options: argparse.Namespace) -> int:
    store = open_store(user_cache())
    entry = store.find(options.engine)
    store.write_archive(entry.engine_id, options.output)
    return _give_entry(entry, options, terminal_text(str(options.output)))


def _import(options: argparse.Namespace) -> int:
    return _give_entry(open_store(user_cache()).read_archive(options.path), options)


_PRUNED = {True: "removed", False: "is in use, and stays"}


def _prune(options: argparse.Namespace) -> int:
    if options.keep < 0:
        raise EngineError(f"--keep={options.keep}: expected 0 or more")
    store, named = open_store(user_cache()), _named_engines((options.baseline_dir, Path(".perfsuite") / "baselines"))
    unnamed = [each for each in store.entries() if each.engine_id not in named]
    done = [(each, store.remove(each.engine_id)) for each in unnamed[: max(0, len(unnamed) - options.keep)]]
    n_kept = len(store.entries())
    lines = [f"{each.engine_id}: {_described(each)}: {_PRUNED[is_removed]}" for each, is_removed in done]
    plain = {
        "removed": [each.engine_id for each, is_removed in done if is_removed],
        "in_use": [each.engine_id for each, is_removed in done if not is_removed],
        "n_kept": n_kept,
    }
    return give(Answer(parts=[*lines, f"{format_count(n_kept, 'engine')} kept"], plain=plain), options)


def _named_engines(folders: tuple[Path, ...]) -> set[str]:
    """Return the ids that baselines name; those of a damaged file count as well."""
    texts = (path.read_text(errors="replace") for folder in folders for path in folder.glob("*/*.json"))
    return {found for text in texts for found in _NAMED.findall(text)}


def _described(entry: StoredEngine) -> str:
    build = f"build {entry.build_id}" if entry.build_id else ""
    return terminal_text(", ".join(filter(None, (entry.kind, entry.version, build, format_bytes(entry.n_bytes)))))


_RUNS = {"list": _list, "show": _show, "keep": _keep, "export": _export, "import": _import, "prune": _prune}
