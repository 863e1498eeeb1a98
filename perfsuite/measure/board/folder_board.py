"""A board that only runs what is uploaded: its link leads to a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfsuite import __version__
from perfsuite.device.machine import Conditions
from perfsuite.device.target.protocol import COMMAND_LIMIT_S
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, MeasurementError
from perfsuite.measure.board.folder_answers import AnsweringPipes, Answers, CameBack, Plan
from perfsuite.measure.board.hello import Hello
from perfsuite.measure.board.holding import Claim
from perfsuite.measure.board.pipes import Pipes
from perfsuite.measure.board.remote_board import RemoteBoard, TargetConnecting
from perfsuite.measure.plan import SCHEMA
from perfsuite.records.bundle import check_bundle
from perfsuite.records.job import BOARD, BUNDLES, PLACE, RESULTS, read_job

#: The desk is not there at all, so it cannot count as gone.
_SILENCE_S = 86_400.0


class FolderTarget(Target):
    """A way to a folder here that stands for one there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def text(self) -> str:
        """``folder job``."""
        return f"folder {self._folder}"

    def put(self, source: Path, destination: str, *, limit_s: float = COMMAND_LIMIT_S) -> None:
        """Copy a file into the folder."""
        here = self._folder / Path(destination).relative_to(PLACE)
        try:
            here.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, here)
        except OSError as error:
            raise MeasurementError(f"{here}: cannot be written ({error.strerror}); make room there") from None

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConnecting(TargetConnecting):
    """How a folder is reached."""

    answers: Callable[[], Answers]

    def started(self) -> Pipes:
        """Return pipes whose other end is the folder."""
        return AnsweringPipes(self.answers())


def planned_board(folder: Path, conditions: Conditions, claim: Claim, *, n_pairs: int, cache_dir: Path) -> RemoteBoard:
    """Return a board that writes down what it is asked, beside the bundle in its folder.

    Opening it raises the DeviceError of a folder without a bundle.
    """

    def plan() -> Plan:
        machine = check_bundle(folder / BUNDLES / BOARD).machines[0]
        return Plan(folder=folder, architecture=machine, n_pairs=n_pairs)

    return _board(folder, conditions, claim, plan, cache_dir)


def answered_board(
    folder: Path, results: Path | None, conditions: Conditions, claim: Claim, *, cache_dir: Path
) -> RemoteBoard:
    """Return a board that answers with what came back of a folder: `results`, or what is in the folder itself.

    Raises DeviceError: the folder is none, was altered, or is another suite's or device's.
    """
    job = read_job(folder)
    if (job.suite_version, job.plan_schema) != (__version__, SCHEMA):
        raise DeviceError(
            f"{folder}: was planned by perfsuite {job.suite_version} (plans of schema {job.plan_schema}), "
            f"this is {__version__} ({SCHEMA}); ingest it with that, or plan it anew"
        )
    if job.device != claim.name:
        raise DeviceError(f"{folder}: is for {job.device}, not for {claim.name}")
    if (seen := check_bundle(folder / BUNDLES / BOARD).digest) != job.bundle_digest:
        raise DeviceError(f"{folder}: holds the bundle {seen}, the plan is for {job.bundle_digest}; plan it anew")
    came_back = folder / RESULTS if results is None else results
    return _board(folder, conditions, claim, lambda: CameBack(folder, came_back, job), cache_dir)


def _board(
    folder: Path, conditions: Conditions, claim: Claim, answers: Callable[[], Answers], cache_dir: Path
) -> RemoteBoard:
    connecting = FolderConnecting(
        name=claim.name,
        target=FolderTarget(folder),
        home=str(PLACE),
        hello=Hello(claim=claim, conditions=conditions, silence_limit_s=_SILENCE_S),
        tell=lambda text: None,
        cache_dir=cache_dir,
        answers=answers,
    )
    return RemoteBoard(connecting=connecting)
