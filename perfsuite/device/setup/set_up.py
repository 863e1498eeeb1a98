"""Installing the suite on a device, from the desk: look what is there, send what is needed, let it be installed."""

from __future__ import annotations

import getpass
import io
import json
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from perfsuite.device.probe.readings import folder_there, take_survey
from perfsuite.device.setup.needs import (
    PYTHON_QUESTION,
    QUESTION,
    Installed,
    Missing,
    least_free_bytes,
    missing_things,
    read_installed,
    read_python,
)
from perfsuite.device.setup.suite_wheel import SuiteWheel, engine_requirement, pack_suite, suite_requirements
from perfsuite.device.target.exchange import Exchange
from perfsuite.device.target.shell_target import Target
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import DeviceError, LinkError

#: The installer says something every five seconds; connecting included.
SILENCE_LIMIT_S = 90.0

#: Longest to wait for the installer to end by itself, once its input is closed; and longer than all of its steps.
_END_LIMIT_S, _LONGEST_S = 30.0, 86400.0

_Answer = TypeVar("_Answer")


class _AnsweredError(Exception):
    """What was waited for is here."""


def converse(
    target: Target,
    command: Sequence[str],
    hear: Callable[[dict[str, Any]], _Answer | None],
    *,
    silence_limit_s: float = SILENCE_LIMIT_S,
) -> _Answer | None:
    """Start a program there, let `hear` have what its lines of JSON say, and return what that returns other than None.

    Then, and where `hear` raises, the program is ended there; None where it ends by itself. Raises LinkError: the link
    was lost, or nothing was heard for too long.
    """
    process = target.start(command)
    unread, answers = bytearray(), list[_Answer]()

    def take(chunk: bytes) -> None:
        unread.extend(chunk)
        *lines, rest = unread.split(b"\n")
        unread[:] = rest
        for event in filter(None, map(_event, lines)):
            if (answer := hear(event)) is not None:
                answers.append(answer)
                raise _AnsweredError

    exchange = Exchange(process, io.BytesIO(), 0, patience_s=_END_LIMIT_S)
    try:
        errors = exchange.carry(take, _LONGEST_S, silence_limit_s=silence_limit_s)
    except _AnsweredError:
        return answers[0]
    except TimeoutError:
        raise LinkError(
            f"{target.text}: heard nothing for {silence_limit_s:.0f} s; look whether it is still there, then again"
        ) from None
    if process.returncode not in (0, 1):
        raise LinkError(f"{target.text}: {target.link_complaint(errors)}")
    return None


def _event(line: bytes | bytearray) -> dict[str, Any] | None:
    """Read a line; None for what else prints there, such as a login message."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


#: Longest for each step there; llama.cpp takes a small board up to an hour.
LIMITS_S = {"environment": 600.0, "engine": 4 * 3600.0, "install": 2 * 3600.0, "question": 300.0}

#: Runs the installer out of the wheel.
LAUNCHER = (
    "import sys; sys.path.insert(0, sys.argv[1]); from perfsuite.device.setup.installer import run; run(sys.argv[2])"
)

#: Of a line that pip or a compiler prints.
_MOST_CHARACTERS = 80


class Telling(Protocol):
    """What hears how far an installation is."""

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Say what is done now."""

    def remark(self, text: str) -> None:
        """Say something that is worth a line of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOrder:
    """What must be installed, and how."""

    #: The device's, for messages.
    device: str
    #: The folder there, as the profile has it.
    home: str
    #: The Python there that makes the environment.
    python: str = "python3"
    #: Wheels at the desk, which pip there looks at first.
    wheels: Path | None = None
    #: Whether pip there looks at these alone.
    is_offline: bool = False
    #: Install also what is there already, and compile llama.cpp again.
    is_forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """An installation that is in use."""

    installed: Installed
    #: Its Python.
    python: str
    #: Whether it was installed now, and not there already.
    is_new: bool


class MissingError(DeviceError):
    """Something that an installation needs is not there; all of it is in `missing`."""

    def __init__(self, device: str, missing: tuple[Missing, ...]) -> None:
        first, *others = [each for each in missing if each.is_needed]
        more = f" (and {len(others)} more)" if others else ""
        super().__init__(f"{device}: {first.text}{more}; then run 'perfsuite devices setup {device}' again")
        self.missing = missing


def set_up(target: Target, order: SetupOrder, tell: Telling) -> SetUp:
    """Install the suite that runs here on a device, unless it is there.

    Raises MissingError: something is missing there, and nothing was changed; DeviceError: a step failed there, what was
    installed before is still in use; LinkError: the link was lost; what was begun there is ended and removed by the
    next setup.
    """
    wheels = _wheel_files(order)
    tell.step(f"looking at {target.text}")
    readings = take_survey(target, folder=order.home)
    home = folder_there(order.home, readings)
    answer = target.run([order.python, "-I", "-c", PYTHON_QUESTION])
    python = read_python(answer.text)
    missing = missing_things(readings, python, command=order.python, is_offline=order.is_offline)
    for each in missing:
        tell.remark(each.text)
    if any(each.is_needed for each in missing):
        raise MissingError(order.device, missing)
    packed = pack_suite()
    incoming = f"{home}/incoming"
    wheel = _sent(target, packed, f"{incoming}/{packed.digest}", tell)
    for number, path in enumerate(wheels):
        tell.step(f"sending {path.name}", number, len(wheels))
        target.put(path, f"{incoming}/wheels/{path.name}")
    request = _request(order, packed, home, wheel, wheels=wheels, least_bytes=least_free_bytes(readings))
    return _installed(target, order, [order.python, "-I", "-c", LAUNCHER, wheel, json.dumps(request)], tell)


def _wheel_files(order: SetupOrder) -> tuple[Path, ...]:
    if order.wheels is None:
        if order.is_offline:
            raise DeviceError("--offline: needs --wheels DIR, a folder with all wheels that the suite requires")
        return ()
    found = tuple(sorted(order.wheels.glob("*.whl"))) if order.wheels.is_dir() else ()
    if not found:
        raise DeviceError(f"--wheels={order.wheels}: holds no wheel (*.whl); fill it with 'pip download', see the docs")
    return found


def _sent(target: Target, packed: SuiteWheel, folder: str, tell: Telling) -> str:
    """Put the suite there; one with the same content stays."""
    tell.step(f"sending the suite ({len(packed.content) / 2**20:.1f} MiB)")
    with work_folder() as here:
        path = here / packed.file_name
        path.write_bytes(packed.content)
        target.put(path, f"{folder}/{packed.file_name}", limit_s=600.0)
    return f"{folder}/{packed.file_name}"


def _request(
    order: SetupOrder, packed: SuiteWheel, home: str, wheel: str, *, wheels: tuple[Path, ...], least_bytes: int
) -> Mapping[str, Any]:
    """Return what the installer is given."""
    engine = engine_requirement(suite_requirements(Path(__file__).resolve().parents[3]))
    owner = {
        "user": getpass.getuser(),
        "host": socket.gethostname(),
        "run_id": f"setup-{secrets.token_hex(8)}",
        "purpose": f"perfsuite devices setup {order.device}",
    }
    return {
        "device": order.device,
        "owner": owner,
        "by": f"{owner['user']} from {owner['host']}",
        "home": home,
        "identity": {"digest": packed.digest, "engine": engine, "python": order.python},
        "wheel": wheel,
        "wheels": [path.name for path in wheels],
        "wheel_dirs": [f"{home}/incoming/wheels"] if wheels else [],
        "is_offline": order.is_offline,
        "force": order.is_forced,
        "least_free_bytes": least_bytes,
        "limits_s": LIMITS_S,
        "question": list(QUESTION),
    }


def _installed(target: Target, order: SetupOrder, command: list[str], tell: Telling) -> SetUp:
    step = "its start"

    def hear(event: Mapping[str, Any]) -> SetUp | None:
        nonlocal step
        if "step" in event:
            step = event["step"]
            tell.step(step)
        elif "line" in event:
            tell.step(f"{step}: {event['elapsed_s']} s, at: {event['line'][:_MOST_CHARACTERS]}")
        elif "failed" in event:
            raise DeviceError(f"{order.device}: {event['failed']}")
        elif "done" in event:
            done = event["done"]
            installed = read_installed(done["installed"])
            return SetUp(installed=installed, python=str(done["python"]), is_new=bool(done["is_new"]))
        return None

    done = converse(target, command, hear)
    if done is None:
        raise DeviceError(f"{order.device}: the installer there ended without a word, at: {step}; run setup again")
    return done
