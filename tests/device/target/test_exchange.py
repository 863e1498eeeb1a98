"""What passes through a process's pipes: nothing of it can wait for another, and nothing of it is endless."""

from __future__ import annotations

import io
import subprocess
import time

import pytest

from perfsuite.device.target.exchange import Exchange


def exchange(script: str, sent: bytes = b"", size_bytes: int | None = None) -> tuple[Exchange, subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe, stderr=pipe)
    return Exchange(process, io.BytesIO(sent), len(sent) if size_bytes is None else size_bytes), process


def test_errors_and_output_do_not_wait_for_each_other() -> None:
    output: list[bytes] = []
    both, _ = exchange("head -c 300000 /dev/zero >&2; echo out; exec >&-; echo end >&2", b"x" * 300_000)
    assert both.carry(output.append, 20) == bytes(300_000) + b"end\n"
    assert b"".join(output) == b"out\n"


def test_the_input_ends_with_the_process() -> None:
    output: list[bytes] = []
    both, _ = exchange("head -c 4; timeout 0.3 cat; echo $?", b"word")
    both.carry(output.append, 20)
    assert b"".join(output) == b"word124\n"


@pytest.mark.parametrize("script", ["exec sleep 30", "exec yes", "exec yes >&2"])
def test_the_limit_holds_whatever_is_written(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfsuite.device.target.exchange._PATIENCE_S", 0.2)
    both, process = exchange(script)
    since = time.monotonic()
    with pytest.raises(TimeoutError):
        both.carry(lambda chunk: None, 0.3)
    assert process.returncode is not None
    assert time.monotonic() - since < 3


def test_a_source_that_became_shorter_is_told() -> None:
    both, process = exchange("cat", b"word", size_bytes=5)
    with pytest.raises(OSError, match="it became shorter while it was sent"):
        both.carry(lambda chunk: None, 20)
    assert process.returncode is not None
