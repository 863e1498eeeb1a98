"""What a run has to know of a board before it makes plans for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfsuite.measure.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """A board as it describes itself; paths are the board's own."""

    #: As `perfsuite.device.fingerprint.host_fingerprint` makes it there.
    fingerprint: Mapping[str, str]
    #: Which of several boards of a kind: a hash of its machine id or serial number, never the number itself.
    identity: str
    hostname: str
    #: As `perfsuite.device.threads` has them there.
    default_threads: int
    usable_threads: int
    #: Where the suite keeps files there.
    cache_dir: Path
    #: The llama.cpp that is measured there.
    engine: Engine
    #: What the suite there is made of, as 'perfsuite devices setup' has noted; None where it came otherwise.
    suite_digest: str | None
    #: Variables with which a worker finds the OpenCL runtimes there.
    opencl_environment: Mapping[str, str]
    load_average: float

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**asdict(self), "cache_dir": str(self.cache_dir), "engine": self.engine.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> BoardFacts:
        """Undo `to_plain`."""
        engine = Engine.from_plain(plain["engine"])
        return cls(**{**plain, "cache_dir": Path(plain["cache_dir"]), "engine": engine})
