"""The files of a test board's sshd: its host key, a user's key, the configuration, and what the desk knows of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.reach import Reach

#: Debian has it where ordinary users do not look.
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin:/usr/bin") or ""
INSTALL = "'make test-needs' installs it"

_CONFIGURATION = """\
ListenAddress {address}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
AcceptEnv LANG LC_*
StrictModes no
PrintMotd no
PrintLastLog no
MaxStartups 100
LogLevel VERBOSE
"""


@dataclass(frozen=True, kw_only=True)
class SshdFiles:
    folder: Path
    address: str
    port: int
    user: str

    def write(self, variables: Mapping[str, str]) -> None:
        """Make the keys and the configuration; the variables are those of every session."""
        self.new_host_key()
        self.trust()
        _generate(self.folder / "user_key")
        text = _CONFIGURATION.format(address=self.address, port=self.port, folder=self.folder)
        if variables:
            text += f"SetEnv {' '.join(f'{name}={value}' for name, value in variables.items())}\n"
        (self.folder / "sshd_config").write_text(text)

    def new_host_key(self) -> None:
        _generate(self.folder / "host_key")

    def trust(self) -> None:
        key = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[{self.address}]:{self.port} {key}")

    def reach(self) -> Reach:
        return Reach(
            way="ssh",
            address=f"{self.user}@{self.address}",
            port=self.port,
            identity_file=str(self.folder / "user_key"),
            known_hosts_file=str(self.folder / "known_hosts"),
        )

    @property
    def command(self) -> tuple[str, ...]:
        """What runs the sshd in the foreground; its log is ``sshd.log``."""
        return (SSHD, "-D", "-f", f"{self.folder}/sshd_config", "-E", f"{self.folder}/sshd.log")


def _generate(path: Path) -> None:
    path.unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test board", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=20)
