"""What OpenSSH's client says when a link fails, and what a user can do about it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from perfsuite.device.reach import Reach
from perfsuite.device.target.words import LOST_IN_THE_MIDDLE, last_line

#: Source: OpenSSH 9.2, sshconnect.c, sshconnect2.c, clientloop.c, mux.c, ssh.c, authfile.c, as it prints them.
_LOST = (
    r"^(mux_client_\w+: .*|Connection to .* closed by remote host|client_loop: send disconnect: .*"
    r"|Timeout, server .* not responding|(Read|Write) from remote host .*|Control socket .*)"
)

_Explain = Callable[[re.Match[str], Reach], str]


def explained(errors: str, reach: Reach) -> str:
    """Return one line: what happened, and what to do; ssh's own words where they are none of those known."""
    for pattern, explain in _KNOWN:
        if found := re.search(pattern, errors, re.MULTILINE):
            return explain(found, reach)
    told = f"; the last words: {last_line(errors)}" if errors.strip() else ""
    return f"{LOST_IN_THE_MIDDLE}{told}"


def _changed(found: re.Match[str], reach: Reach) -> str:
    host, file = found["host"], found["file"]
    return (
        f"its host key is not the one that {file} has for it: another machine has its address, or it was set up anew; "
        f"if you know why: ssh-keygen -f {shlex.quote(file)} -R {shlex.quote(host)}, "
        f"and accept the new key once: {_by_hand(reach)}"
    )


def _unknown(found: re.Match[str], reach: Reach) -> str:
    return f"its host key is not known; look at it and accept it once: {_by_hand(reach)}"


def _denied(found: re.Match[str], reach: Reach) -> str:
    key = f"the key {reach.identity_file}" if reach.identity_file else "no key of yours"
    verb = "is not accepted" if reach.identity_file else "is accepted"
    return f"{key} {verb} ({found['ways']}; no password is asked for); give it one: ssh-copy-id {_by_hand(reach)[4:]}"


def _too_open(found: re.Match[str], reach: Reach) -> str:
    key = found["key"]
    return f"others can read the key {key}, so ssh does not use it; chmod 600 {shlex.quote(key)}"


def _unresolved(found: re.Match[str], reach: Reach) -> str:
    return f"no host {found['host']} ({found['why']}); see address in [reach] of its profile, or ~/.ssh/config"


def _unconnected(found: re.Match[str], reach: Reach) -> str:
    todo = {
        "Connection refused": "nothing listens there: is sshd running, is the port right?",
        "No route to host": "is the device up, and on this network?",
        "Network is unreachable": "is this machine on its network?",
        "Connection timed out": "is the device up, and on this network?",
    }.get(found["why"], "is the device up?")
    return f"{found['why'].lower()} ({found['host']} port {found['port']}); {todo}"


def _closed_early(found: re.Match[str], reach: Reach) -> str:
    return f"no sshd answers there ({found[0].rstrip()}); is it starting, full, or refusing this machine?"


def _lost(found: re.Match[str], reach: Reach) -> str:
    return f"{LOST_IN_THE_MIDDLE} ({found[1].rstrip('.')})"


def _misconfigured(found: re.Match[str], reach: Reach) -> str:
    return f"OpenSSH refuses its configuration: {found[0]}"


#: In order: what ssh prints first of several lines tells more than the last.
_KNOWN: tuple[tuple[str, _Explain], ...] = (
    (r"^Offending \S+ key in (?P<file>.+):\d+\r?$(?s:.*?)^Host key for (?P<host>\S+) has changed", _changed),
    (r"^No \S+ host key is known for |^Host key verification failed", _unknown),
    (r"^Permissions \d+ for '(?P<key>.+)' are too open", _too_open),
    (r"^\S+: Permission denied \((?P<ways>[^)]*)\)", _denied),
    (r"^ssh: Could not resolve hostname (?P<host>[^:]*): (?P<why>.*?)\r?$", _unresolved),
    (r"^ssh: connect to host (?P<host>\S+) port (?P<port>\d+): (?P<why>.*?)\r?$", _unconnected),
    (r"^(kex_exchange_identification: .*|Connection timed out during banner exchange)", _closed_early),
    (r"^(Connection (reset|closed) by \S+ port \d+|ssh_exchange_identification: .*)", _closed_early),
    (
        r"^.*(Bad configuration option|bad configuration options|Unsupported option|Bad owner or permissions on).*",
        _misconfigured,
    ),
    (_LOST, _lost),
)


def _by_hand(reach: Reach) -> str:
    """Return the command by which a user reaches the same device by hand."""
    parts = ["ssh"]
    if reach.port is not None:
        parts += ["-p", f"{reach.port}"]
    if reach.known_hosts_file is not None:
        parts += ["-o", f"UserKnownHostsFile={reach.known_hosts_file}"]
    return shlex.join([*parts, reach.address])
