"""What OpenSSH's client says when a link fails, and what a user can do about it."""

from __future__ import annotations

import shlex

from perfsuite.device.reach import Reach
from perfsuite.device.target.words import LOST_IN_THE_MIDDLE, explanation

_UNCONNECTED = r"^ssh: connect to host (?P<host>\S+) port (?P<port>\d+): "

#: By what ssh prints, in order: what it prints first of several lines tells more than the last.
#: *Source*: OpenSSH 9.2, sshconnect.c, sshconnect2.c, clientloop.c, mux.c, ssh.c, authfile.c.
_KNOWN = (
    (
        r"^Offending \S+ key in (?P<file>.+):\d+\r?$(?s:.*?)^Host key for (?P<host>\S+) has changed",
        "its host key is not the one that {file} has for it: another machine has its address, or it was set up anew; "
        "if you know why: ssh-keygen -f {file:quoted} -R {host:quoted}, and accept the new key once: ssh {by_hand}",
    ),
    (
        r"^No \S+ host key is known for |^Host key verification failed",
        "its host key is not known; look at it and accept it once: ssh {by_hand}",
    ),
    (
        r"^Permissions \d+ for '(?P<key>.+)' are too open",
        "others can read the key {key}, so ssh does not use it; chmod 600 {key:quoted}",
    ),
    (
        r"^\S+: Permission denied \((?P<ways>[^)]*)\)",
        "{denied} ({ways}; no password is asked for); give it one: ssh-copy-id {by_hand}",
    ),
    (
        r"^ssh: Could not resolve hostname (?P<host>[^:]*): (?P<why>.*?)\r?$",
        "no host {host} ({why}); see address in [reach] of its profile, or ~/.ssh/config",
    ),
    (
        _UNCONNECTED + "Connection refused",
        "connection refused ({host} port {port}); nothing listens there: is sshd running, is the port right?",
    ),
    (
        _UNCONNECTED + "(?P<why>No route to host|Connection timed out)",
        "{why:lower} ({host} port {port}); is the device up, and on this network?",
    ),
    (
        _UNCONNECTED + "Network is unreachable",
        "network is unreachable ({host} port {port}); is this machine on its network?",
    ),
    (_UNCONNECTED + r"(?P<why>.*?)\r?$", "{why:lower} ({host} port {port}); is the device up?"),
    (
        r"^(kex_exchange_identification: .*|ssh_exchange_identification: .*|Connection timed out during banner exchange"
        r"|Connection (reset|closed) by \S+ port \d+)",
        "no sshd answers there ({said}); is it starting, full, or refusing this machine?",
    ),
    (
        r"^.*(Bad configuration option|bad configuration options|Unsupported option|Bad owner or permissions on).*",
        "OpenSSH refuses its configuration: {said}",
    ),
    (
        r"^(mux_client_\w+: .*|Connection to .* closed by remote host|client_loop: send disconnect: .*"
        r"|Timeout, server .* not responding|(Read|Write) from remote host .*|Control socket .*)",
        LOST_IN_THE_MIDDLE + " ({said})",
    ),
)


def explained(errors: str, reach: Reach) -> str:
    """Return one line: what happened, and what to do; ssh's own words where they are none of those known."""
    named = reach.identity_file
    denied = f"the key {named} is not accepted" if named else "no key of yours is accepted"
    return explanation(errors, _KNOWN, denied=denied, by_hand=_by_hand(reach))


def _by_hand(reach: Reach) -> str:
    """Return the words behind ``ssh`` by which a user reaches the same device by hand."""
    port = [] if reach.port is None else ["-p", f"{reach.port}"]
    known = [] if reach.known_hosts_file is None else ["-o", f"UserKnownHostsFile={reach.known_hosts_file}"]
    return shlex.join([*port, *known, reach.address])
