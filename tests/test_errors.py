"""Passwords, keys and tokens are masked, and nothing else is."""

from __future__ import annotations

import pytest

from perfsuite.device.address import reach_of
from perfsuite.errors import DeviceError, HistoryError, PerfsuiteError, masked, masked_command
from perfsuite.records.history_place import history_place


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:hunter2@host/x: no", "https://***@host/x: no"),
        ("https://host/x?list=1&X-Amz-Signature=hunter2&n=3", "https://host/x?list=1&X-Amz-Signature=***&n=3"),
        ("AWS_SECRET_ACCESS_KEY=hunter2 llama-cli", "AWS_SECRET_ACCESS_KEY=*** llama-cli"),
        ("--farm=me:hunter2@host:20408: expected", "--farm=me:***@host:20408: expected"),
        ("ssh:me:hunter2@board: no", "ssh:me:***@board: no"),
    ],
)
def test_secrets_of_a_text_are_masked(text: str, shown: str) -> None:
    """Users and passwords, signatures, and variables that name a secret."""
    assert masked(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "ssh:root@board:2222: no sshd answers",
        "serial:root@/dev/ttyUSB0,115200",
        "s3://farm/history",
        "--n-tokens=128 --keep-tokens 4 -m model.gguf",
        "phase/smollm2-135m-q8_0/siso/decode: 1.2 ms, expected 1.1 ms; a key=value pair",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """Addresses without a password, numbers of tokens and ids of cases are shown as they are."""
    assert masked(text) == text


def test_secrets_of_a_command_are_masked() -> None:
    """An option's own word, the one behind it, and a variable that env sets."""
    words = ("env", "HF_TOKEN=a", "llama-server", "--api-key", "b", "--hf-token=c", "-hft", "d", "--api-key-file", "e")
    assert masked_command(words) == (
        *("env", "HF_TOKEN=***", "llama-server", "--api-key", "***", "--hf-token=***", "-hft", "***"),
        *("--api-key-file", "e"),
    )
    assert masked_command(("llama-cli", "-m", "a.gguf", "-n", "32")) == ("llama-cli", "-m", "a.gguf", "-n", "32")


def test_no_error_shows_a_password() -> None:
    for kind in (PerfsuiteError, HistoryError):
        error = kind("https://me:hunter2@host: refused")
        assert {str(error), f"{error}"} == {"https://***@host: refused"}
    with pytest.raises(HistoryError) as told:
        history_place("https://me:hunter2@host/history", "--perf-history=")
    assert "hunter2" not in str(told.value)


def test_an_address_of_ssh_takes_no_password() -> None:
    """It is refused, so that no run keeps it, and the line does not repeat it."""
    with pytest.raises(DeviceError, match=r"ssh:me:\*\*\*@board.*is not an address for ssh") as told:
        reach_of("ssh:me:hunter2@board")
    assert "hunter2" not in str(told.value)
    assert reach_of("ssh:me@[fe80::1]:22").address == "me@fe80::1"
