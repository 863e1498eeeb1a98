"""The builds of llama.cpp on a board: found in its bundle or its store, and kept there.

The program there copies and hashes files; what they mean is read here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from perfsuite import __version__
from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure.engine import Engine
from perfsuite.measure.engine_store import (
    ENGINE,
    KERNELS,
    KERNELS_DIR,
    MANIFEST,
    StoredEngine,
    check_entry,
    entry_id,
    is_engine_id,
    is_library,
    manifest_content,
    read_entry,
)
from perfsuite.measure.native import ENGINE_LIBRARY, PHASE_TRACER_LIBRARY
from perfsuite.records.whole_file import file_digest

#: What says of a folder of libraries, or of the one above it, which llama.cpp it holds: as a bundle's manifest does.
ENGINE_FILE, BUNDLE_MANIFEST = "engine.json", "manifest.json"


def read_digest(path: Path) -> str:
    """Return the SHA-256 of a file; `MeasurementError` where it cannot be read."""
    try:
        return file_digest(path)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error


@dataclass(kw_only=True)
class BoardEngines:
    """Those of one board."""

    #: Asks the program there: kind and arguments.
    ask: Callable[[str, Mapping[str, Any]], Any]
    bundle: Path
    cache_dir: Path
    #: By a folder of libraries: the suite's own library for them, unless it is the bundle's.
    own_libraries: dict[str, str] = field(default_factory=dict)

    def bundled(self) -> Engine:
        """Return the bundle's own; `EngineError` where there is none."""
        return self._engine_in(self.bundle, BUNDLE_MANIFEST, self.look(self.bundle / BUNDLE_MANIFEST))

    def find(self, named: Path | None) -> Engine:
        """Return the one of a folder of libraries, None for the bundle's; `EngineError` where there is none."""
        if named is None:
            return self.bundled()
        if not self.ask("look", {"path": str(named)})["is_folder"]:
            raise EngineError(f"{named}: is not a folder; expected one that was kept there, or a bundle's")
        for folder in (named, named.parent):
            for name in (ENGINE_FILE, BUNDLE_MANIFEST):
                content = self.look(folder / name)
                if content is not None and b'"engine"' in content:
                    return self._engine_in(folder, name, content)
        raise EngineError(f"{named}: holds no {ENGINE_FILE}; a board runs what a bundle brought it")

    def look(self, path: Path) -> bytes | None:
        """Return what a small file there holds; None where it is none."""
        content = self.ask("look", {"path": str(path)})["content"]
        return content if content is None else bytes(content)

    def own_library(self, engine: Engine) -> Path:
        """Return where the suite's own library for an engine lies."""
        return Path(self.own_libraries.get(str(engine.library_dir), self.bundle / "lib" / ENGINE_LIBRARY))

    def digests(self, folder: Path) -> dict[str, str]:
        """Return the hashes of the files in a folder there, by name."""
        told = self.ask("digests", {"folder": str(folder)})
        return {str(name): str(each["sha256"]) for name, each in told.items()}

    def keep(self, engine: Engine | None, version: str) -> str:
        """Keep one in the board's store, or the kernels of the suite here; return its id."""
        if engine is None:
            contents = {f"kernels/{path.name}": path.read_bytes() for path in sorted(KERNELS_DIR.glob("*.cl"))}
            digests = {f"kernels/{path.name}": read_digest(path) for path in sorted(KERNELS_DIR.glob("*.cl"))}
            entry = _entry(KERNELS, digests, sum(map(len, contents.values())))
            return self._make_entry(entry, files={}, links={}, contents=contents)
        told = self.ask("digests", {"folder": str(engine.library_dir)})
        libraries = {name: each for name, each in told.items() if is_library(name)}
        digests = {f"lib/{name}": str(each["sha256"]) for name, each in libraries.items()}
        entry = _entry(
            ENGINE,
            digests,
            sum(int(each["n_bytes"]) for each in libraries.values()),
            build_id=engine.build_id,
            version=version,
        )
        own = str(self.own_library(engine))
        files = {f"lib/{name}": str(engine.library_dir / name) for name in libraries}
        beside = str(Path(own).parent)
        if PHASE_TRACER_LIBRARY in self.ask("digests", {"folder": beside}):
            files[f"lib-perfsuite/{PHASE_TRACER_LIBRARY}"] = f"{beside}/{PHASE_TRACER_LIBRARY}"
        described = {**engine.to_plain(), "library_dir": "lib", "include_dirs": []}
        contents = {ENGINE_FILE: json.dumps({"suite_version": __version__, "engine": described}).encode()}
        # The suite's own library finds the engine's from where it lies in a bundle: in the folder 'engine' beside.
        return self._make_entry(
            entry,
            files={**files, f"lib-perfsuite/{ENGINE_LIBRARY}": own},
            links={"engine": "lib"},
            contents=contents,
        )

    def _make_entry(
        self, entry: StoredEngine, *, files: Mapping[str, str], links: Mapping[str, str], contents: Mapping[str, bytes]
    ) -> str:
        folder = self.cache_dir / "engines" / entry.engine_id
        whole = {**contents, MANIFEST: manifest_content(entry)}
        self.ask("keep", {"folder": str(folder), "files": dict(files), "links": dict(links), "contents": whole})
        return entry.engine_id

    def kept_folder(self, engine_id: str) -> Path | None:
        """Return where one is kept there; None where it is not, `EngineError` where it is damaged."""
        folder = self.cache_dir / "engines" / engine_id
        content = self.look(folder / MANIFEST) if is_engine_id(engine_id) else None
        if content is None:
            return None
        entry = read_entry(content, folder / MANIFEST)
        digests: dict[str, str] = {}
        for part in {name.partition("/")[0] for name in entry.files}:
            digests |= {f"{part}/{name}": digest for name, digest in self.digests(folder / part).items()}
        check_entry(entry, engine_id, folder, lambda name: digests.get(name, ""))
        return folder

    def _engine_in(self, folder: Path, name: str, content: bytes | None) -> Engine:
        """Read which llama.cpp a folder on the board holds."""
        if content is None:
            raise EngineError(f"{folder}: holds no {name}; run 'perfsuite devices setup' with the device's name")
        try:
            plain = json.loads(content)
            told = dict(plain["engine"])
            is_same_suite = plain["suite_version"] == __version__
            engine = Engine.from_plain({**told, "library_dir": str(folder / told["library_dir"])})
        except (ValueError, LookupError, TypeError) as error:
            raise EngineError(f"{folder / name}: cannot be read ({type(error).__name__})") from error
        if not is_same_suite:
            raise EngineError(
                f"{folder}: was made by perfsuite {plain['suite_version']}, this is {__version__}; "
                "set the device up with that llama.cpp again"
            )
        part = "lib" if name == BUNDLE_MANIFEST else "lib-perfsuite"  # of any bundle there, by whatever path
        if folder != self.bundle:  # the program knows those beside it
            self.own_libraries[str(engine.library_dir)] = str(folder / part / ENGINE_LIBRARY)
        return engine


def _entry(
    kind: str, digests: Mapping[str, str], n_bytes: int, *, build_id: str = "", version: str = ""
) -> StoredEngine:
    return StoredEngine(
        engine_id=entry_id(digests),
        kind=kind,
        files=digests,
        n_bytes=n_bytes,
        kept_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        build_id=build_id,
        version=version,
    )
