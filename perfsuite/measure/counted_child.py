"""What runs under the counting tool: calls a function, again and again, and reads the clock before and after each call.

It takes its job from its standard input, and leaves an answer in the file that the job names. It is a program by itself
and imports nothing of the suite, so that no change of the suite is in what it counts.
"""

from __future__ import annotations

import _thread
import gc
import importlib
import json
import os
import pickle  # nosec B403  # the job is the parent's own
import sys
from time import monotonic_ns


def _nothing() -> None:
    """Stand in for the function while what surrounds it warms up."""


def _called(
    call: bytes, readings: list[int], errors: list[str], ended: _thread.LockType, never: _thread.LockType
) -> None:
    try:
        function, arguments = pickle.loads(call)  # nosec B301  # as above; each call has arguments of its own
        gc.collect()
        before_ns = monotonic_ns()
        result = function(*arguments)
        after_ns = monotonic_ns()
        readings += (before_ns, after_ns)
        del function, arguments, result
    except BaseException as error:
        errors.append(_told(error))
    ended.release()
    never.acquire()


def _readings(call: bytes, n_calls: int) -> list[int]:
    """Call a function in threads, one after the other, and return what the clock said; RuntimeError where it raised.

    A thread has a heap of its own, in which nothing lies yet, and no other gets it while the thread is there.
    """
    readings: list[int] = []
    errors: list[str] = []
    ended, never = _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    never.acquire()
    for _ in range(n_calls):
        _thread.start_new_thread(_called, (call, readings, errors, ended, never))
        ended.acquire()
        if errors:
            raise RuntimeError(errors[0])
    return readings


def _told(error: BaseException) -> str:
    import traceback

    what = " ".join("".join(traceback.format_exception_only(error)).split())
    frames = traceback.extract_tb(error.__traceback__)[1:]
    return f"{what} ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else what


def _answer(path: list[str], modules: list[str], call: bytes, n_calls: int) -> dict[str, object]:
    sys.path[:] = path
    try:
        for name in modules:
            importlib.import_module(name)
    except BaseException as error:
        return {"error": f"its module cannot be imported: {_told(error)}"}
    gc.disable()
    gc.freeze()  # so that what was loaded is not looked at before each call
    try:
        _readings(pickle.dumps((_nothing, ())), n_calls)
        return {"readings": _readings(call, n_calls)}
    except RuntimeError as error:
        return {"error": f"it raised {error}"}


if __name__ == "__main__":
    *job, place = pickle.load(sys.stdin.buffer)  # nosec B301  # as above
    answer = _answer(*job)
    with open(place, "w") as file:
        json.dump(answer, file)
    os._exit(0)  # whatever threads still do
