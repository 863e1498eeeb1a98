"""What stands at the other end of a link to a folder: a plan that is being written, or what came back of one.

Either answers what the program on a board would be asked, so that the desk's code does not know the difference. What
nobody knows yet is made up while a run is planned; whatever measures raises `AskedError`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from perfsuite import __version__
from perfsuite.errors import AskedError, DeviceError, EngineError, MeasurementError, UnansweredError
from perfsuite.measure.competition import LOOK_S
from perfsuite.records.codec import pack, unpack
from perfsuite.records.job import (
    BOARD,
    BUNDLES,
    ENDED,
    PLACE,
    REQUESTS,
    WEIGHTS,
    Asked,
    Job,
    read_answer,
    read_request,
    refuse_foreign,
    sha256,
)
from perfsuite.records.whole_file import write_whole_bytes

Arguments = Mapping[str, Any]

#: What measures.
_RUNS = ("run", "run_in_turns")

#: Drawn anew for each process, or for each pair; and what only the program there knows.
_DRAWN = frozenset({"layout_seed", "seed", "leader", "order", "looks", "environment", "environments", "limit_s"})

#: What is looked at beside a run there, by pattern; `perfsuite.device.stability.sampler` makes samples of them.
_POWER = (
    "sys/class/powercap/intel-rapl:*/energy_uj",
    *(f"sys/class/power_supply/*/{name}" for name in ("power_now", "current_now", "voltage_now", "status")),
    *("sys/class/hwmon/hwmon*/power*_input", "sys/class/hwmon/hwmon*/curr*_input", "sys/class/hwmon/hwmon*/in*_input"),
)
_GROUPS = (
    ("sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq",),
    ("sys/class/thermal/thermal_zone*/temp",),
    (
        "sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq",
        "sys/class/thermal/cooling_device*/cur_state",
        "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_count",
        "sys/devices/platform/soc*/*firmware/get_throttled",
    ),
)

#: A machine of which nothing is known yet.
_NO_MACHINE: Mapping[str, Any] = {
    "snapshot": {"links": [], "files": [["proc/meminfo", b"MemTotal: 0 kB\n"], ["proc/loadavg", b"0 0 0\n"]]},
    "held": {"notes": [], "problems": []},
    "board_number": "0" * 32,
}


_NEEDS_ANSWERS = "needs answers while it runs, which a device that only runs what is uploaded cannot give"


class Answers(Protocol):
    """What answers a desk."""

    def answer(self, kind: str, arguments: Arguments) -> Mapping[str, Any]:
        """Return the message that answers a request; raises `PerfsuiteError` where there is none."""

    def ended(self) -> Mapping[str, Any]:
        """Return the last message."""


class AnsweringPipes:
    """The pipes of a link whose other end is here."""

    is_cut = False
    has_begun = True
    errors = b""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._messages: deque[dict[str, Any]] = deque()

    def send(self, message: Mapping[str, Any], until: float) -> None:
        """Have a message answered."""
        if message["kind"] == "bye":
            self._messages.append(dict(self._answers.ended()))
            return
        answer = self._answers.answer(message["kind"], message["arguments"])
        self._messages.append({**answer, "id": message["id"]})

    def received(self, left_s: float) -> dict[str, Any] | None:
        """Return the next message."""
        return self._messages.popleft() if self._messages else None

    def give_up(self, lost: object) -> None:
        """Nobody waits at the other end."""

    def cut(self) -> None:
        """Nothing runs at the other end."""

    def close_outgoing(self) -> None:
        """As `cut`."""

    def exit_status(self) -> int | None:
        """Return None: there is no process."""
        return None


@dataclass(kw_only=True)
class FolderFiles:
    """What a desk asks of the folder itself: it is here as it will be there."""

    folder: Path

    def answer(self, kind: str, arguments: Arguments) -> Mapping[str, Any] | None:
        """Return the answer to what needs no device; None where it needs one."""
        if kind == "look":
            return _answer(self._looked_at(Path(arguments["path"])))
        if kind == "put_weights":
            name = f"{WEIGHTS}/{arguments['digest']}.gguf"
            return _answer({"path": str(PLACE / name), "is_there": (self.folder / name).is_file()})
        if kind == "keep":
            raise EngineError("a device that only runs what is uploaded keeps no llama.cpp")
        if kind == "digests":
            raise EngineError(
                "llama.cpp's OpenCL backend needs to know its device beforehand, which a device that only runs what is "
                "uploaded cannot say; measure it over a link"
            )
        return None

    def _looked_at(self, path: Path) -> dict[str, Any]:
        """Look at a file of a bundle; there is nothing else that a desk may know of."""
        here = self.folder / path.relative_to(PLACE) if path.is_relative_to(PLACE / BUNDLES) else None
        is_there = here is not None and ".." not in path.parts
        content = here.read_bytes() if here is not None and is_there and here.is_file() else None
        return {"path": str(path), "is_folder": bool(here and is_there and here.is_dir()), "content": content}


@dataclass(kw_only=True)
class Plan:
    """Writes down what is asked."""

    folder: Path
    architecture: str
    n_pairs: int
    asked: list[Asked] = field(default_factory=list)

    def answer(self, kind: str, arguments: Arguments) -> Mapping[str, Any]:
        """Write a request down, and make up what is not known yet."""
        own = FolderFiles(folder=self.folder).answer(kind, arguments)
        if own is not None:
            return own
        if kind == "set":
            raise DeviceError("governors are not set on a device that only runs what is uploaded; use another profile")
        self._keep(kind, arguments)
        if kind in _RUNS:
            raise AskedError(_NEEDS_ANSWERS, n_runs=self.n_pairs if kind == "run_in_turns" else None)
        if kind == "hello":
            self._keep("competition", {"look_s": LOOK_S})
            return _answer(welcome(is_root=False))
        if kind == "machine":
            return _answer(self._machine())
        if kind not in _NO_MACHINE:
            raise DeviceError(_NEEDS_ANSWERS)
        return _answer(_NO_MACHINE[kind])

    def ended(self) -> Mapping[str, Any]:
        """Have nothing to say."""
        return {"kind": "ended", "error": None, "held": None}

    def _machine(self) -> dict[str, Any]:
        """Describe a machine with more processors than any engine has threads: the program there binds them."""
        return {
            "hostname": "unknown",
            "architecture": self.architecture,
            "n_processors": 4096,
            "usable_processors": list(range(4096)),
            "properties": [],
            "variables": [],
        }

    def _keep(self, kind: str, arguments: Arguments) -> None:
        looked = {"looks": _planned_looks(arguments["looks"])} if arguments.get("looks") else {}
        content = pack({"kind": kind, "arguments": {**arguments, **looked}})
        asked = Asked(name=f"{len(self.asked):04}", sha256=sha256(content))
        (self.folder / REQUESTS).mkdir(parents=True, exist_ok=True)
        write_whole_bytes(self.folder / REQUESTS / asked.name, content, DeviceError)
        self.asked.append(asked)


class CameBack:
    """Answers with what came back; a run is answered once, what a device says of itself as often as it is asked."""

    def __init__(self, folder: Path, results: Path, job: Job) -> None:
        refuse_foreign(results, job)
        self._folder, self._results = folder, results
        self._answers: defaultdict[bytes, deque[Mapping[str, Any]]] = defaultdict(deque)
        self._last: dict[str, Mapping[str, Any]] = {}
        self._n_asked, self._n_answered = 0, 0
        devices: set[str] = set()
        for kind, key, answer in self._read(job, devices):
            self._n_asked += kind in _RUNS
            waiting = self._answers[key]  # of what was planned there is an entry, answered or not
            if answer is not None:
                self._n_answered += kind in _RUNS
                waiting.append(answer)
        if len(devices) > 1:
            raise MeasurementError(f"{results}: answers of {len(devices)} devices; fetch those of one")
        if not devices:
            raise MeasurementError(f"{results}: holds no answer; fetch what the job has left, or look at its log")

    def answer(self, kind: str, arguments: Arguments) -> Mapping[str, Any]:
        """Return the answer that came back."""
        own = FolderFiles(folder=self._folder).answer(kind, arguments)
        if own is not None:
            return own
        key = _key(kind, arguments)
        if kind in _RUNS and key not in self._answers:
            raise UnansweredError(f"{self._results}: the plan has no such run; measure it over a link")
        waiting = self._answers[key]
        if waiting:
            self._last[kind] = waiting.popleft()
        elif kind in _RUNS or kind not in self._last:
            raise UnansweredError(
                f"{self._results}: {self._n_answered} of the {self._n_asked} runs of the plan came back, "
                f"and no further one answers; run the folder again, or plan more"
            )
        found = self._last[kind]
        return _answer(welcome(is_root=bool(found["value"]["is_root"]))) if _is_welcome(kind, found) else found

    def ended(self) -> Mapping[str, Any]:
        """Return the last word, where there is one."""
        answer = read_answer(self._results / ENDED, "")
        found = {} if answer is None else _message(answer.message, self._results / ENDED)
        is_last = found.get("kind") == "ended"
        return found if is_last else {"kind": "ended", "error": None, "held": None}

    def _read(self, job: Job, devices: set[str]) -> Iterator[tuple[str, bytes, Mapping[str, Any] | None]]:
        for asked in job.requests:
            request = unpack(read_request(self._folder, asked))
            path = self._results / asked.name
            answer = read_answer(path, asked.sha256)
            key = _key(request["kind"], request["arguments"])
            if answer is None:
                yield request["kind"], key, None
                continue
            devices.add(answer.device)
            yield request["kind"], key, _message(answer.message, path)


def welcome(*, is_root: bool) -> dict[str, Any]:
    """Return what a program says of itself whose place is not known here."""
    return {
        "program": __version__,
        "is_root": is_root,
        "home": str(PLACE),
        "bundle": str(PLACE / BUNDLES / BOARD),
        "cache_dir": str(PLACE / "cache"),
    }


def _is_welcome(kind: str, message: Mapping[str, Any]) -> bool:
    return kind == "hello" and message["kind"] == "answer" and isinstance(message.get("value"), dict)


def _answer(value: Any) -> dict[str, Any]:
    return {"kind": "answer", "value": value}


def _planned_looks(looks: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be looked at, by patterns: which files there are is not known here."""
    return {**looks, "power": list(_POWER), "groups": [[[each] for each in group] for group in _GROUPS]}


def _message(content: bytes, path: Path) -> Mapping[str, Any]:
    plain: Any = None
    with suppress(ValueError):
        plain = unpack(content)
    if not isinstance(plain, dict) or not isinstance(plain.get("kind"), str):
        raise MeasurementError(f"{path}: holds no message; fetch the folder of the answers again")
    return plain


def _key(kind: str, arguments: Arguments) -> bytes:
    """Return what is alike of a request whenever it is asked: not who asks, and nothing that is drawn."""
    if kind not in _RUNS:
        return kind.encode()
    plans = arguments["plans"] if kind == "run_in_turns" else [arguments["plan"]]
    rest = {name: value for name, value in arguments.items() if name not in ("plan", "plans")}
    return pack([kind, [_undrawn(unpack(each)) for each in plans], _undrawn(rest)])


def _undrawn(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _undrawn(value) for name, value in plain.items() if name not in _DRAWN}
    return [_undrawn(each) for each in plain] if isinstance(plain, list) else plain
