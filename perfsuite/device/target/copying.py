"""Files to a device and from it: streamed through its shell, checked there, and whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from perfsuite.device.process_start import process_start
from perfsuite.device.target.exchange import Take
from perfsuite.device.target.shell import first_bytes
from perfsuite.errors import LinkError

if TYPE_CHECKING:
    from perfsuite.device.target.shell_target import Target

#: Longest that a copy may take: a model of many gigabytes over a slow network.
COPY_LIMIT_S = 3600.0

_CHUNK_BYTES = 1 << 20


class _Content(NamedTuple):
    """What two files with the same content share."""

    size_bytes: int
    sha256: str


#: The path ``$1`` as the device sees it.
_PATH = 'case $1 in /*) p=$1;; "~/"*) p=$HOME/${1#??};; *) p=$HOME/$1;; esac; '

#: Tells size and hash of the file ``$1``, or nothing where its size is not ``$2``; without ``$2`` of any file.
_DESCRIBE = (
    _PATH + '[ -e "$p" ] || exit 4; '
    '[ -f "$p" ] || { echo "it is a folder or a device, no file" >&2; exit 3; }; '
    'n=$(wc -c <"$p") || exit 3; n=$((n)); '
    '[ -z "$2" ] || [ "$n" = "$2" ] || exit 4; '
    "h=$({ " + first_bytes('"$n"') + '; } <"$p" | sha256sum) || exit 3; echo "$n ${h%% *}"'
)

#: Tells when the process ``$1`` started, in clock ticks since the boot, or nothing where there is none. After a boot
#: the numbers of processes come again; with their start they do not.
_STARTED = (
    'started() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return; s=${s##*) }; set -- $s; shift 19; echo "$1"; }; '
)

#: Writes its input to the file ``$1`` through a temporary file, ``$2``.<process>-<start>, in the same folder, where it
#: has the size ``$3`` and the hash ``$4``. Temporary files of processes that are no more are swept.
_RECEIVE = (
    _PATH + _STARTED + 'umask 022; d=${p%/*}/; mkdir -p "$d" || exit 3; '
    'for f in "$d$2".*; do o=${f##*.}; '
    '[ ! -e "$f" ] || [ "$(started "${o%-*}")" = "${o#*-}" ] || rm -f "$f"; done; '
    't=$d$2.$$-$(started $$); trap \'trap "" HUP INT TERM; rm -f "$t"\' EXIT; '
    "trap 'trap \"\" HUP INT TERM; exit 3' HUP INT TERM; "
    '[ ! -e "$t" ] && [ ! -L "$t" ] || rm -f "$t"; set -C; cat >"$t" || exit 3; set +C; n=$(wc -c <"$t"); n=$((n)); '
    '[ "$n" = "$3" ] || { echo "$n of $3 bytes arrived" >&2; exit 3; }; '
    'h=$(sha256sum <"$t") || exit 3; [ "${h%% *}" = "$4" ] || { echo "it arrived changed" >&2; exit 3; }; '
    'sync "$t" 2>/dev/null; mv -f "$t" "$p"'
)

_SEND = _PATH + 'exec cat <"$p"'

#: What `_DESCRIBE` exits with where there is no such file, or none of that size.
_OTHER = 4


def put(target: Target, source: Path, destination: str, limit_s: float) -> None:
    """Copy a file there, as `Target.put`."""
    name = _checked_name(destination)
    try:
        with source.open("rb") as stream:
            content = _content(stream)
            if _described(target, destination, limit_s, size=content.size_bytes) == content:
                return
            stream.seek(0)
            told = _script(_RECEIVE, destination, _temporary(name), str(content.size_bytes), content.sha256)
            completed = target.run_with_file(told, stream, limit_s=limit_s)
    except OSError as error:
        raise LinkError(f"{_named(source)}: cannot be read ({error.strerror or error})") from error
    if completed.status:
        advice = "free some space there" if b"No space left" in completed.errors else "what was there stays"
        raise LinkError(f"{target.text}: {_named(destination)} was not put: {completed.last_words}; {advice}")


def get(target: Target, source: str, destination: Path, limit_s: float) -> None:
    """Copy a file from there, as `Target.get`."""
    _checked_name(source)
    content = _described(target, source, limit_s)
    if content is None:
        raise LinkError(f"{target.text}: {_named(source)}: there is no such file on the device")
    try:
        if destination.is_file():
            with destination.open("rb") as present:
                if _content(present) == content:
                    return
        with _partial(destination) as partial:
            with partial.open("wb") as sink:
                take = _up_to(content.size_bytes, sink, f"{target.text}: {_named(source)}")
                target.read(_script(_SEND, source), take, limit_s=limit_s)
            with partial.open("rb") as arrived:
                seen = _content(arrived)
            if seen != content:
                n_bytes = f"{seen.size_bytes} of {content.size_bytes} bytes arrived"
                told = f"{target.text}: {_named(source)} was not got: {n_bytes}"
                raise LinkError(f"{told}, or it changed meanwhile; run it again")
            partial.replace(destination)
    except OSError as error:
        raise LinkError(f"{_named(destination)}: cannot be written ({error.strerror or error})") from error


def _up_to(size_bytes: int, sink: IO[bytes], named: str) -> Take:
    """Return what writes so many bytes and no more."""

    def take(chunk: bytes) -> None:
        if sink.tell() + len(chunk) > size_bytes:
            raise LinkError(
                f"{named} was not got: it grew beyond the {size_bytes} bytes that it had; "
                "run it again when nothing writes to it"
            )
        sink.write(chunk)

    return take


def _described(target: Target, path: str, limit_s: float, size: int | None = None) -> _Content | None:
    """Return what a file there holds; None where there is none, or none of that size."""
    told = target.run(_script(_DESCRIBE, path, "" if size is None else str(size)), limit_s=limit_s)
    if told.status == _OTHER:
        return None
    parts = told.text.split()
    if told.status or len(parts) != 2:
        raise LinkError(f"{target.text}: {_named(path)}: {told.last_words}")
    return _Content(int(parts[0]), parts[1])


@contextmanager
def _partial(destination: Path) -> Iterator[Path]:
    """Give a temporary file beside the destination, which is gone at the end; those of dead processes are swept."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    name = _temporary(destination.name)
    for left in destination.parent.glob(f"{name}.*"):
        process, _, started = left.suffix[1:].partition("-")
        if _started(process) != started:
            left.unlink(missing_ok=True)
    partial = destination.parent / f"{name}.{os.getpid()}-{_started(os.getpid())}"
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


def _started(process: int | str) -> str:
    """Return when a process started, as `_STARTED` tells it."""
    started = process_start(int(process)) if str(process).isdecimal() else None
    return str(started.ticks) if started else ""


def _content(stream: IO[bytes]) -> _Content:
    digest = hashlib.sha256()
    size = 0
    while chunk := stream.read(_CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return _Content(size, digest.hexdigest())


def _temporary(name: str) -> str:
    """Return the beginning of a temporary name: short whatever the name is, and its own."""
    return f".perfsuite-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


def _checked_name(path: str) -> str:
    """Return the last part of a path on a device, or refuse a path that can be no file's."""
    name = path.rpartition("/")[2]
    if name in ("", ".", "..", "~"):
        raise LinkError(f"{path!r}: names no file on the device")
    return name


def _script(script: str, *words: str) -> tuple[str, ...]:
    return ("sh", "-c", script, "sh", *words)


def _named(path: Path | str) -> str:
    """Return a path as a message has it: as it is, or escaped where that is no part of one line."""
    return told if (told := str(path)).isprintable() else repr(told)
