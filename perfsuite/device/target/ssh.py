"""A device over OpenSSH's client: one shared connection, host keys that are known, no question asked."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from perfsuite.device.reach import Reach
from perfsuite.device.target.protocol import LOST_IN_THE_MIDDLE, explanation
from perfsuite.device.target.shell import one_line, quoted
from perfsuite.device.work_folder import WorkFolder, new_work_folder
from perfsuite.errors import DeviceError, LinkError

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


#: A link that does not answer for this long is lost: the interval of OpenSSH's own questions, and how many stay open.
ALIVE_INTERVAL_S = 5
ALIVE_COUNT = 3
CONNECT_LIMIT_S = 10
#: The shared connection outlives its last command by this.
PERSIST_S = 60

#: OpenSSH makes the socket under its name and 17 more characters, and Linux takes 107 bytes; a work folder's name has
#: up to 42.
_LONGEST_FOLDER = 43

#: What a configuration may tell OpenSSH to send (Debian's does); a device is to be as it is without the desk's.
_DESK_VARIABLES = ("LANG", "LANGUAGE", "LC_*")
#: What OpenSSH itself runs by, whatever its configuration sends.
_KEPT = "HOME|PATH|USER|LOGNAME|SHELL|SSH_AUTH_SOCK|TMPDIR"

#: Runs its words without the variables whose names match the first: patterns of a shell, parted by ``|``.
_WITHOUT = (
    "for perfsuite_name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do "
    'case $perfsuite_name in {kept}) ;; {patterns}) unset "$perfsuite_name" ;; esac; done; exec "$@"'
)

_SETTINGS = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "UpdateHostKeys": "no",
    "ControlMaster": "auto",
    "ControlPersist": f"{PERSIST_S}",
    "ServerAliveCountMax": f"{ALIVE_COUNT}",
    "ConnectTimeout": f"{CONNECT_LIMIT_S}",
    "LogLevel": "ERROR",
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "ForwardAgent": "no",
    "ClearAllForwardings": "yes",
}


class SshLink:
    """A shell behind OpenSSH's client."""

    def __init__(self, reach: Reach, *, alive_interval_s: int = ALIVE_INTERVAL_S) -> None:
        address = reach.address
        if not address or address.startswith("-") or not address.isprintable() or any(map(str.isspace, address)):
            raise DeviceError(f"{address!r}: no address for ssh; name a host, user@host, or a name of ~/.ssh/config")
        self._reach = reach
        self._folder = _new_folder()
        alive = {"ServerAliveInterval": f"{alive_interval_s}", "ControlPath": _escaped(self._folder.path / "s")}
        self._settings = (*_options({**_SETTINGS, **alive, **_own(reach)}), "-T")
        self._without: str | None = None
        self._end = weakref.finalize(self, _end_master, (*self._settings, "--", address), self._folder)

    @property
    def text(self) -> str:
        """``ssh root@board:2222``."""
        return self._reach.text

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return ssh's command line, without what its configuration would send of the desk's variables."""
        if not self._end.alive:
            raise LinkError(f"{self.text}: the link was closed; open another")
        if shutil.which("ssh") is None:
            raise LinkError(f"{self.text}: OpenSSH's client is not installed here; Debian has it as openssh-client")
        self._refuse_missing_key()
        line = one_line(script)
        if self._without is None:
            patterns = (*_DESK_VARIABLES, *self._sent())
            self._without = _WITHOUT.format(kept=_KEPT, patterns="|".join(map(_pattern, patterns)))
        return ("sh", "-c", self._without, "sh", "ssh", *self._settings, "--", self._reach.address, line)

    def complaint(self, errors: str) -> str:
        """Explain ssh's words."""
        return explained(errors, self._reach)

    def seconds_for(self, size_bytes: int) -> float:
        """No time that is worth a word."""
        return 0.0

    def close(self) -> None:
        """End the shared connection; what uses it still loses its link."""
        self._end()

    def _sent(self) -> tuple[str, ...]:
        """Return the patterns of variables that the configuration for this address sends."""
        asked = ("ssh", "-G", *self._settings, "--", self._reach.address)
        try:
            told = subprocess.run(
                asked, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=CONNECT_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return ()
        lines = told.stdout.decode("utf-8", "replace").splitlines()
        return tuple(line.split(" ", 1)[1].strip() for line in lines if line.lower().startswith("sendenv "))

    def _refuse_missing_key(self) -> None:
        named = self._reach.identity_file
        if named is not None and not Path(named).expanduser().is_file():
            raise LinkError(f"{self.text}: there is no key {named}; see identity_file in [reach] of its profile")


def _own(reach: Reach) -> dict[str, str]:
    own: dict[str, str] = {}
    if reach.port is not None:
        own["Port"] = f"{reach.port}"
    if reach.identity_file is not None:
        own |= {"IdentityFile": _escaped(Path(reach.identity_file).expanduser()), "IdentitiesOnly": "yes"}
    if reach.known_hosts_file is not None:
        known = _escaped(Path(reach.known_hosts_file).expanduser())
        own |= {"UserKnownHostsFile": known, "GlobalKnownHostsFile": "none"}
    return own


def _options(settings: dict[str, str]) -> tuple[str, ...]:
    return tuple(part for name, text in settings.items() for part in ("-o", f"{name}={text}"))


def _escaped(path: Path) -> str:
    """Return a path as OpenSSH's configuration takes it: quoted, and with no ``%`` that it would replace."""
    told = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{told}"'


def _pattern(text: str) -> str:
    """Return a pattern of OpenSSH's, which knows ``*`` and ``?`` alone, as a shell reads it."""
    return "".join(part if part in ("*", "?") else quoted(part) for part in re.split(r"([*?])", text) if part)


def _new_folder() -> WorkFolder:
    usual = tempfile.gettempdir()
    try:
        return new_work_folder(usual if len(usual) <= _LONGEST_FOLDER else "/tmp")  # nosec B108  # by mkdtemp
    except OSError as error:
        raise LinkError(
            f"no folder for ssh's shared connection can be made ({error.strerror or error}: {error.filename}); "
            "let TMPDIR name a folder that you can write to"
        ) from error


def _end_master(settings: Sequence[str], folder: WorkFolder) -> None:
    if (folder.path / "s").exists() and shutil.which("ssh"):
        ended = ("ssh", "-O", "exit", *settings)
        # Where it does not end now, it does so `PERSIST_S` after its last command.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(ended, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=10)
    folder.remove()
