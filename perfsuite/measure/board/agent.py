"""The suite's program on a board: ``python -m perfsuite.measure.board.agent``, at the end of a desk's link.

It takes requests on its standard input and answers on its standard output, one after the other, with the very code of
a local run. It ends when its input ends, when the desk is silent for too long, and on a signal: the worker in progress
is killed, what was set is restored, and the lock is given back.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.device.lock import end_holder, lock_holder
from perfsuite.errors import LinkError, PerfsuiteError
from perfsuite.measure.board.answering import Answering
from perfsuite.measure.board.ending import EndedError, Ending
from perfsuite.measure.board.frames import is_writable, packed_frame, told_error
from perfsuite.measure.board.hello import PREAMBLE, Hello, own_versions, versions_complaint
from perfsuite.measure.board.holding import Claim, held
from perfsuite.measure.board.listening import LAST_WORD_S, Listener, Speaker
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.records.own_files import user_cache

#: Longest to wait for killed workers.
_REAP_LIMIT_S = 10.0

#: Makes the board that a desk says hello to; it is told what is waited for meanwhile.
MakeBoard = Callable[[Hello, Callable[[str], None]], LocalBoard]


class Agent:
    """One desk's agent: its main thread serves, another one listens."""

    def __init__(self, incoming: int, outgoing: int, make_board: MakeBoard) -> None:
        self._outgoing = outgoing
        self._make_board = make_board
        self._board: LocalBoard | None = None
        self._answering: Answering | None = None
        self._ending = Ending()
        self._speaker = Speaker(outgoing, self._ending.is_over.is_set)
        self._listener = Listener(incoming, self._speaker, self._ending)

    def serve(self) -> str:
        """Serve until the desk has had enough, or is gone; return why, "" for a desk that said so."""
        try:
            self._serve()
        except EndedError:  # wherever it came, also while another error was looked at
            pass
        finally:
            while not self._has_let_go():  # as many signals as there are may come just before they are held off
                pass
        return self._ending.reason or ""

    def _has_let_go(self) -> bool:
        try:
            self._let_go()
        except EndedError:
            return False
        return True

    def _serve(self) -> None:
        """Serve until the desk has had enough; a signal may raise `EndedError` anywhere in it."""
        ending = self._ending
        try:
            ending.hear_signals(lambda: self._speaker.is_busy)
            os.write(self._outgoing, PREAMBLE)
            for work, name in ((self._listener.listen, "perfsuite-desk"), (ending.insist, "perfsuite-end")):
                threading.Thread(target=work, name=name, daemon=True).start()
            is_served = self._greeted()
            while is_served and not ending.is_over.is_set():
                self._answer()
        except OSError:
            pass
        except Exception as error:  # a defect is one line, too
            ending.blame(told_error(error)["text"])

    def _greeted(self) -> bool:
        """Take the hello, and the board; whether the desk's suite is this one, and the board can be had."""
        request = self._listener.requests.get()
        hello = self._hello(request)
        if hello is None:
            self._say(packed_frame({"kind": "refused", "versions": own_versions()}))
            return False
        try:
            self._board = self._make_board(hello, self._note)  # known before it is opened: whatever comes, it is closed
            self._answering = Answering(self._board, self._speaker.tell)
            _end_predecessor(hello.claim)
            self._board.open()
        except PerfsuiteError as error:
            self._say(packed_frame({"kind": "error", "id": request["id"], "error": told_error(error)}))
            return False
        self._say(packed_frame({"kind": "answer", "id": request["id"], "value": None}))
        return True

    def _hello(self, request: dict[str, Any]) -> Hello | None:
        """Read the hello; None for one of another suite, which may have another shape and the same version."""
        if request["kind"] != "hello" or versions_complaint(request["arguments"], own_versions()):
            return None
        try:
            return Hello.from_plain(request["arguments"])
        except LinkError:
            return None

    def _answer(self) -> None:
        """Serve one request; what goes wrong is the desk's to raise."""
        assert self._answering is not None
        request = self._listener.requests.get()
        try:
            value = self._answering.answered(request)
            frame = packed_frame({"kind": "answer", "id": request["id"], "value": value})
        except Exception as error:  # a defect, too, is told to the desk in one line
            frame = packed_frame({"kind": "error", "id": request["id"], "error": told_error(error)})
        self._say(frame)

    def _let_go(self) -> None:
        """Kill, restore and unlock, with no signal breaking in; say that it is done, or what could not be restored."""
        self._ending.let_go()
        complaint = None
        try:
            with suppress(Exception):  # whatever cannot be killed, the device is restored
                _kill_workers()
                if self._answering is not None:
                    self._answering.close()
        finally:
            try:
                if self._board is not None:
                    self._board.close()
            except Exception as error:
                complaint = told_error(error)
                self._ending.blame(complaint["text"])
        if not self._speaker.is_cut:
            with suppress(OSError):
                self._speaker.say({"kind": "ended", "error": complaint, "held": self._held()})

    def _held(self) -> dict[str, Any] | None:
        """Return what having the board came to; None where nobody knows."""
        with suppress(Exception):
            return None if self._board is None else self._board.held().to_plain()
        return None

    def _note(self, text: str) -> None:
        self._say(packed_frame({"kind": "note", "text": text}))

    def _say(self, frame: bytes) -> None:
        """Write a message; what wants the end meanwhile gets it afterwards."""
        self._speaker.say_packed(frame)
        if self._ending.is_over.is_set():
            raise EndedError("while a message was written")


def _end_predecessor(claim: Claim) -> None:
    """End another agent of this very run, left on a lost link: it shares the lock, and both would measure at once."""
    folder = None if claim.lock_folder is None else Path(claim.lock_folder)
    owner = lock_holder(folder)
    if owner is not None and owner.run_id == claim.run_id and owner.pid != os.getpid():
        end_holder(owner, folder)


def _kill_workers() -> None:
    """Kill what this process has started; whoever started it kills it, too, unless it was just about to start."""
    import psutil  # takes as long to import as all the rest

    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.Error):
            child.kill()
    psutil.wait_procs(children, timeout=_REAP_LIMIT_S)


def _this_machine(hello: Hello, note: Callable[[str], None]) -> LocalBoard:
    cache_dir = user_cache()
    return LocalBoard(
        cache_dir=cache_dir,
        conditions=hello.conditions,
        hold=partial(held, hello.conditions, hello.claim, note, cache_dir=cache_dir),
    )


def main() -> int:
    """Serve the desk at the other end of this process's pipes; return the exit code."""
    incoming, outgoing = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)  # what anybody prints must not come between the messages
    reason = Agent(incoming, outgoing, _this_machine).serve()
    if reason and is_writable(2, wait_s=LAST_WORD_S):
        with suppress(OSError):
            os.write(2, f"perfsuite: {reason}\n".encode("utf-8", "replace")[: select.PIPE_BUF])
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
