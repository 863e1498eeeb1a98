"""A whole machine of 64-bit Arm to test with: qemu runs Debian's own kernel over the kept files, with sshd on a port.

It has what a board in namespaces lacks: a kernel for Arm with its types, probes and counters of performance, a device
tree, the generic timer. What it writes stays in its memory; ``/desk`` is a folder of this machine. It boots in about
8 s and ends with the tests, even by SIGKILL.
"""

from __future__ import annotations

import subprocess
import time

from perfsuite.device.reach import Reach
from perfsuite.device.work_folder import new_work_folder

from .arm_root import SYSTEM_EMULATOR, ArmRoot
from .board_keys import SshdFiles
from .board_processes import end_process, free_port, has_sshd, start_process

_BOOT_LIMIT_S = 120.0
_HERE, _SSHD_PORT = "127.0.0.1", 2222

#: Its address is what qemu gives the first machine of a network of its own; the kernel's own way to its processes.
_START = """\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
hostname armmachine
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
mkdir -p /run/sshd /etc/ssh/own
cp /desk/host_key /desk/user_key.pub /desk/sshd_config /etc/ssh/own/
chmod 600 /etc/ssh/own/*
/usr/sbin/sshd -D -f /etc/ssh/own/sshd_config -E /desk/sshd.log
"""


class ArmMachine:
    def __init__(self, kept: ArmRoot) -> None:
        self._work = new_work_folder("/var/tmp")
        self.folder = self._work.path
        self._port = free_port()
        self.files = SshdFiles(folder=self.folder, address=_HERE, port=self._port, user="root")
        self.files.write({})
        own = (self.folder / "sshd_config").read_text().replace(str(self.folder), "/etc/ssh/own")
        (self.folder / "sshd_config").write_text(own.replace(f"{_HERE}:{self._port}", f"0.0.0.0:{_SSHD_PORT}"))
        (self.folder / "start").write_text(_START)
        shares = ((kept.root, "kept", ",readonly=on"), (self.folder, "desk", ""))
        self._machine = start_process(
            *(SYSTEM_EMULATOR, "-M", "virt", "-cpu", "max", "-smp", "2", "-m", "1536"),
            *("-display", "none", "-no-reboot", "-serial", f"file:{self.folder}/console"),
            *("-kernel", str(kept.kernel), "-initrd", str(kept.initrd), "-append", "console=ttyAMA0 quiet panic=-1"),
            *("-netdev", f"user,id=net,hostfwd=tcp:{_HERE}:{self._port}-:{_SSHD_PORT}"),
            *("-device", "virtio-net-pci,netdev=net,romfile="),
            *(
                word
                for path, tag, how in shares
                for word in ("-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{how}")
            ),
        )
        try:
            self._await_sshd()
        except BaseException:
            self.stop()
            raise

    def reach(self) -> Reach:
        return self.files.reach()

    def run(self, command: str, *, stdin: str = "", limit_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a line of shell on it; a status other than 0 is no error."""
        options = ("BatchMode=yes", f"UserKnownHostsFile={self.folder}/known_hosts", "ConnectTimeout=60")
        words = ["ssh", "-i", str(self.folder / "user_key"), "-p", str(self._port)]
        words += [word for option in options for word in ("-o", option)]
        words += [f"root@{_HERE}", command]
        return subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=limit_s)

    def said(self, command: str) -> str:
        done = self.run(command)
        assert done.returncode == 0, f"{command}: ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def stop(self) -> None:
        end_process(self._machine)
        self._work.remove()

    def _await_sshd(self) -> None:
        end = time.monotonic() + _BOOT_LIMIT_S
        while not has_sshd(_HERE, self._port):
            if self._machine.poll() is not None:
                assert self._machine.stderr is not None
                told = self._machine.stderr.read().decode(errors="replace")
                raise AssertionError(f"the machine ended as it booted: {told}{self._console()}")
            assert time.monotonic() < end, f"no machine within {_BOOT_LIMIT_S} s: {self._console()}"
            time.sleep(0.2)

    def _console(self) -> str:
        console = self.folder / "console"
        return console.read_text(errors="replace")[-2000:] if console.exists() else ""
