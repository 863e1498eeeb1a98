"""ssh's words and what they mean; those that no test can make a real ssh say, too."""

from __future__ import annotations

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.target.ssh_words import explained

BOARD = Reach(way="ssh", address="root@board")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (
            "ssh: connect to host board port 22: Connection timed out\r\n",
            "connection timed out (board port 22); is the dev",
        ),
        ("ssh: connect to host board port 22: No route to host", "no route to host (board port 22); is the device up"),
        ("ssh: connect to host board port 22: Network is unreachable", "is this machine on its network?"),
        (
            "ssh: connect to host board port 22: Permission denied",
            "permission denied (board port 22); is the device up?",
        ),
        ("Connection timed out during banner exchange", "no sshd answers there (Connection timed out"),
        ("kex_exchange_identification: Connection closed by remote host", "no sshd answers there (kex_exchange"),
        ("Connection reset by 10.0.0.1 port 22", "no sshd answers there (Connection reset"),
        ("client_loop: send disconnect: Broken pipe", "the link was lost in the middle"),
        ("Timeout, server board not responding.", "the link was lost in the middle"),
        ("mux_client_request_session: read from master failed: Broken pipe", "the link was lost in the middle"),
        ("/home/me/.ssh/config line 3: Bad configuration option: x", "OpenSSH refuses its configuration: /home/me"),
        ("Bad owner or permissions on /home/me/.ssh/config", "OpenSSH refuses its configuration: Bad owner"),
        ("root@board: Permission denied (publickey,password).", "no key of yours is accepted (publickey,password;"),
        ("", "the link was lost in the middle"),
        ("something\nelse\n", "run it again; the last words: else"),
    ],
)
def test_words_are_explained(words: str, meaning: str) -> None:
    """Each of ssh's lines is one line that says what to do."""
    told = explained(words, BOARD)
    assert meaning in told
    assert "\n" not in told


def test_a_command_does_not_speak_for_ssh() -> None:
    """What a command wrote about its own files and hosts is not taken for ssh's words."""
    told = explained("cat: x: Permission denied\ncurl: Connection refused\nls: Could not resolve hostname", BOARD)
    assert told.startswith("the link was lost in the middle")
