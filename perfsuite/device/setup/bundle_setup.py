"""Setting up a device by a bundle: send what is missing there, and let it be used, whole or not at all."""

from __future__ import annotations

import getpass
import re
import secrets
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Protocol

from perfsuite.device.probe.readings import folder_there, take_survey
from perfsuite.device.setup.board_survey import BoardSurvey, check_fit, check_room, read_board
from perfsuite.device.setup.bundle_scripts import CURRENT, FOLDER, HOLD, PART, REMOVE, REUSE, STATE, SWITCH
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError, LinkError
from perfsuite.records.bundle import MANIFEST_NAME, WORKER, BundledFile, BundleManifest, check_bundle
from perfsuite.records.whole_file import file_digest
from perfsuite.units import format_bytes

#: Longest for each script there: a card that is slow hashes 40 MB in seconds.
_SCRIPT_LIMIT_S = 300.0
_HOLD_LIMIT_S = 60.0
#: Longest to wait for the end of what holds a board, once its input has ended.
_ENDING_LIMIT_S = 10.0

#: What takes longer to send is said before.
_LONG_S = 60.0

#: What `SWITCH` exits with where the worker does not run.
_DOES_NOT_RUN = 4

_STATE_LINE = re.compile(r"file ([0-9a-f]{64}) (\d+) ([x-]) (\S+)")


class Telling(Protocol):
    """What hears how far a setup is."""

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Say what is done now."""

    def remark(self, text: str) -> None:
        """Say something that is worth a line of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSetUp:
    """A bundle that is in use on a device."""

    digest: str
    #: How many of its files, and bytes, were sent now.
    n_sent: int
    sent_bytes: int
    #: Whether another one, or none, was in use before.
    is_new: bool


def look_at_board(target: Target, home: str) -> tuple[BoardSurvey, str]:
    """Return what a bundle has to suit on a board, and the folder there that `home` means."""
    readings = take_survey(target, folder=home)
    return read_board(readings), folder_there(home, readings)


def set_up_bundle(
    target: Target, device: str, home: str, board: BoardSurvey, bundle: Path, tell: Telling
) -> BundleSetUp:
    """Send a bundle to a device as far as its files are not there, and let it be used.

    Raises DeviceError: the bundle is damaged, does not suit the device, has no room there, or does not run; another
    setup is under way. LinkError: the link was lost. What was in use before still is.
    """
    manifest = check_bundle(bundle)
    check_fit(device, board, manifest)
    place = f"{home}/{FOLDER}"
    with _held(target, device, place):
        state = _State.read(target, place)
        if state.has(manifest, file_digest(bundle / MANIFEST_NAME)):
            return _switched(target, device, place, "", manifest, state, ())
        part = f"{PART}{manifest.digest}-{secrets.token_hex(4)}"
        paths = {each.sha256: path for path, each in state.files.items()}
        there = {each: paths[each.sha256] for each in manifest.files if each.sha256 in paths}
        if there:  # what other bundles have is taken from them
            lines = "".join(f"{path} {part}/{each.path}\n" for each, path in there.items())
            _script(target, REUSE, place, stdin=lines.encode())
        missing = tuple(each for each in manifest.files if each not in there)
        check_room(device, board, size_bytes := sum(each.size_bytes for each in missing))
        if (takes_s := target.seconds_for(size_bytes)) > _LONG_S:
            tell.remark(
                f"{format_bytes(size_bytes)} over {target.text} take about {takes_s / 60:.0f} min; sooner: Ctrl-C, let "
                f"the folder that 'perfsuite bundle -o' writes get to {place}/{manifest.digest} in another way, and "
                "run setup again"
            )
        for number, each in enumerate(missing):
            tell.step("sending the bundle", number, len(missing))
            target.put(bundle / each.path, f"{place}/{part}/{each.path}")
        target.put(bundle / MANIFEST_NAME, f"{place}/{part}/{MANIFEST_NAME}")
        tell.step("letting it be used")
        return _switched(target, device, place, part, manifest, state, missing)


def remove_all(target: Target, device: str, home: str) -> None:
    """Remove all that setup has made on a device; raises as `set_up_bundle`."""
    with _held(target, device, f"{home}/{FOLDER}"):
        _script(target, REMOVE, home)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """The bundles of a device."""

    #: The digest of the one in use.
    current: str | None
    #: By path below the folder of bundles.
    files: dict[str, BundledFile]

    @classmethod
    def read(cls, target: Target, place: str) -> _State:
        current, files = None, {}
        for line in _script(target, STATE, place).splitlines():
            if found := _STATE_LINE.fullmatch(line):
                path, is_program = found[4], found[3] == "x"
                files[path] = BundledFile(path=path, size_bytes=int(found[2]), sha256=found[1], is_program=is_program)
            elif line.startswith("current "):
                current = line.partition(" ")[2].strip()
        return cls(current=current, files=files)

    def has(self, manifest: BundleManifest, manifest_sha256: str) -> bool:
        wanted = {f"{manifest.digest}/{each.path}": (each.sha256, each.is_program) for each in manifest.files}
        wanted[f"{manifest.digest}/{MANIFEST_NAME}"] = (manifest_sha256, False)
        there = {path for path in self.files if path.startswith(f"{manifest.digest}/")}
        return there == wanted.keys() and all(
            self.files[path].sha256 == sha256 and (self.files[path].is_program or not is_program)
            for path, (sha256, is_program) in wanted.items()
        )


def _switched(
    target: Target,
    device: str,
    place: str,
    part: str,
    manifest: BundleManifest,
    state: _State,
    sent: Sequence[BundledFile],
) -> BundleSetUp:
    others = (each.path for each in manifest.files if each.is_program and each.path != WORKER)
    told = target.run(_words(SWITCH, place, part, manifest.digest, WORKER, *others), limit_s=_SCRIPT_LIMIT_S)
    if told.status == _DOES_NOT_RUN:
        needs = f"glibc {manifest.least_glibc}" if manifest.least_glibc else "no C library of the device"
        raise DeviceError(
            f"{device}: the bundle's worker does not run there ({told.last_words}); it is for {manifest.target} and "
            f"needs {needs}; what was there before is still in use"
        )
    if told.status or told.text.splitlines()[-1:] != [f"current {manifest.digest}"]:
        raise DeviceError(f"{device}: {place}/{CURRENT} was not switched: {told.last_words}; look at that folder there")
    return BundleSetUp(
        digest=manifest.digest,
        n_sent=len(sent),
        sent_bytes=sum(each.size_bytes for each in sent),
        is_new=state.current != manifest.digest or bool(part),
    )


@contextmanager
def _held(target: Target, device: str, place: str) -> Iterator[None]:
    """Keep other setups of a device away; the device gives that back when the link ends."""
    who = re.sub(r"[^\w@.-]", "?", f"{getpass.getuser()}@{socket.gethostname()}")
    process = target.start(_words(HOLD, place, who))
    try:
        answer = _first_line(process)
        if answer.startswith("taken"):
            owner = [*answer.split()[2:], "somebody"][0]
            text = f"another setup of it is under way, by {owner}; run it again when that has ended"
            raise DeviceError(f"{device}: {text}")
        if answer != "held":
            process.wait(_ENDING_LIMIT_S)
            assert process.stderr is not None
            raise LinkError(f"{target.text}: {answer or target.link_complaint(process.stderr.read())}")
        yield
    finally:
        _end(process)


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """Return the first line of a program's output; "" where it ends without, or is silent for too long."""
    assert process.stdout is not None
    limit = Timer(_HOLD_LIMIT_S, process.kill)
    limit.start()
    try:
        return process.stdout.readline().decode("utf-8", "replace").strip()
    finally:
        limit.cancel()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Give the device back: what holds it there ends with its input."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(_ENDING_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _script(target: Target, script: str, *words: str, stdin: bytes = b"") -> str:
    told = target.run(_words(script, *words), stdin=stdin, limit_s=_SCRIPT_LIMIT_S)
    if told.status:
        raise LinkError(f"{target.text}: {told.last_words}; look at {words[0]} there, then run setup again")
    return told.text


def _words(script: str, *words: str) -> tuple[str, ...]:
    return ("sh", "-c", script, "sh", *words)
