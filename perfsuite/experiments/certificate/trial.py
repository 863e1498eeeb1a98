"""One trial of a certification: a whole paired comparison whose right answer is known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import MeasurementError
from perfsuite.records.codec import from_plain, parse_json, to_plain
from perfsuite.records.outcome import Outcome

#: Raised whenever a field changes its meaning.
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was done to the new side."""

    #: Share by which the phases `prefill` and `decode` were slowed down, both at once; 0 is an A/A trial.
    phase_ratio: float = 0.0
    #: The operator that was slowed down (a role, or a type as ggml spells it), and by which share.
    operator: str | None = None
    operator_ratio: float = 0.0
    #: Whether a background load was switched on half way to the first look.
    is_loaded: bool = False

    @property
    def is_same(self) -> bool:
        """Whether both sides are the same."""
        return not self.phase_ratio and not self.operator_ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """What was said of one case in one trial."""

    outcome: Outcome
    #: New over old; None where nothing was measured.
    change_ratio: float | None
    smallest_effect_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one comparison answered, and how much it took."""

    truth: Truth
    answers: Mapping[str, CaseAnswer]
    n_pairs: int
    n_discarded: int
    duration_s: float
    #: Role of the operator that lost the most time, by the attribution; None where none did.
    carrier: str | None
    #: By peer and phase: whether its rule alarms on the same samples.
    peer_alarms: Mapping[str, Mapping[str, bool]]
    #: By phase: old and new samples, ns, pair by pair.
    samples_ns: Mapping[str, Sequence[Sequence[int]]]


def append_trial(path: Path, trial: Trial) -> None:
    """Add a trial to a file of trials, one line each.

    Raises `MeasurementError`: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"schema": SCHEMA, **to_plain(trial)}) + "\n")
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from error


def read_trials(path: Path) -> tuple[Trial, ...]:
    """Read a file of trials; one that does not exist has none, and a last line that was cut is left out.

    Raises `MeasurementError`: a line is no trial of this schema.
    """
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read ({error.strerror})") from error
    return tuple(_trials(path, lines))


def _trials(path: Path, lines: list[str]) -> Iterator[Trial]:
    todo = "move the file away and certify anew"
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            continue
        where = f"{path}:{number}: is no trial"
        try:
            plain = parse_json(line)
        except (ValueError, RecursionError) as error:
            raise MeasurementError(f"{where} ({error}); {todo}") from error
        yield from_plain(plain, Trial, where, MeasurementError, todo, schema=SCHEMA, is_closed=True)
