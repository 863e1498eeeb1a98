"""A board to test with: Debian's sshd in namespaces of its own, which are all that root on this machine needs.

By the fixtures of tests/conftest.py: ``board`` (one for the whole session; leave it as you find it), ``fresh_board``
(one for this test alone, which starts in about half a second) and ``start_board`` (several, or one with options).

Its home is a tmpfs of half a GiB: its path is the same here, but what is in it is seen by ``board.outside(path)``
only. A reboot empties ``/run`` and ``/tmp`` and gives it a new boot id; home and host key stay. With ``clock=True``
its date can be set, in processes that run, too (libfaketime); the monotonic clock goes on.

``rootfs`` is the folder of another system, such as Debian for arm64 (`tests.arm_root`), whose programs this machine
runs under an emulator: the board has its files, of which nothing is written. Its kernel stays this machine's.
``without`` names libraries of this machine that the board has not, such as ``libgomp.so*``. ``sys_tree`` is a folder
shaped like ``/sys``: what it has is what the board has, and what the board writes is written to its files.

Everything of a board is in its processes' namespaces, and they die with pytest, even by SIGKILL: no mount, interface or
process is left. The folder of its keys is removed by `stop`, or else when the next tests make a board.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from perfsuite.device.reach import Reach
from perfsuite.device.work_folder import new_work_folder

from .board_keys import INSTALL, SSHD, SshdFiles
from .board_processes import child_of, end_process, has_sshd, own_mounts, processes_beside, start_process

_FAKETIME = "libfaketimeMT.so.1"

#: ``clock_nanosleep`` as the kernel has it: libfaketime 0.9.10 lets it fail for monotonic times (Python's sleep).
_SLEEP = """\
#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
    return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) == 0 ? 0 : errno;
}
"""


def clock_library() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob(f"**/faketime/{_FAKETIME}"))), None)


def clock_variables(folder: Path) -> dict[str, str]:
    """Return the variables of processes whose date is off by what the file ``clock`` of a folder says."""
    library = clock_library()
    assert library is not None, f"libfaketime is not installed; {INSTALL}"
    (folder / "clock").write_text("+0\n")
    return {
        "LD_PRELOAD": f"{_sleep_library(folder)}:{library}",
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _sleep_library(folder: Path) -> Path:
    source, library = folder / "sleep.c", folder / "sleep.so"
    source.write_text(_SLEEP)
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=20)
    return library


SYS = Path("/sys")

#: Folders that keep what the machine has in them besides what the tree has; every other folder of the tree is all.
_MERGED = re.compile(r"(|class|bus|devices(|/platform|/virtual|/system(|/cpu(|/cpu\d+))))")

#: What a board is measured by: the machine's own never shows through where a tree is given.
_HIDDEN = re.compile(
    r"class/(thermal|hwmon|devfreq|power_supply|powercap|kgsl|drm)"
    r"|devices/system/cpu/(cpufreq|cpu\d+/cpufreq|intel_pstate|amd_pstate)"
)


def sys_mounts(tree: Path, staging: Path) -> list[str]:
    """Return shell lines that put the tree over ``/sys``, in the mount namespace that they run in.

    The tree's files are bound, not copied: what the board writes there is seen here, and the other way round.
    """
    return [f"mkdir {_q(staging)}", *_merge(tree, SYS, staging, ""), f"mount --rbind {_q(staging)} /sys"]


def _merge(tree: Path, real: Path, to: Path, name: str) -> Iterator[str]:
    own = {each.name: each for each in sorted(tree.iterdir())}
    for each in sorted(real.iterdir()) if real.is_dir() else ():
        if each.name not in own and not _HIDDEN.fullmatch(_join(name, each.name)):
            yield from _show(each, to / each.name)
    for each in own.values():
        inner = _join(name, each.name)
        if each.is_dir() and not each.is_symlink() and _MERGED.fullmatch(inner):
            yield f"mkdir {_q(to / each.name)}"
            yield from _merge(each, real / each.name, to / each.name, inner)
        else:
            yield from _show(each, to / each.name)


def _show(source: Path, to: Path) -> Iterator[str]:
    if source.is_symlink():
        yield f"ln -s {_q(source.readlink())} {_q(to)}"
    elif source.is_dir():
        yield f"mkdir {_q(to)} && mount --rbind {_q(source)} {_q(to)}"
    else:
        yield f": >{_q(to)} && mount --bind {_q(source)} {_q(to)}"


def _join(name: str, part: str) -> str:
    return f"{name}/{part}" if name else part


def _q(path: Path) -> str:
    return shlex.quote(str(path))


_CABLE_LIMIT_S = 20.0
_ATTEMPTS = 20


class Cable(NamedTuple):
    desk_interface: str
    board_interface: str
    desk_address: str
    board_address: str


def plug_in(board: int) -> Cable:
    """Lead a cable from here into the network namespace of a process; its own end it has to set up itself."""
    for _ in range(_ATTEMPTS):
        block = random.randrange(1 << 14)
        net = f"10.213.{block >> 6}"
        first = (block & 63) * 4
        cable = Cable(f"psb{block}h", f"psb{block}", f"{net}.{first + 1}", f"{net}.{first + 2}")
        if f"{net}.{first}/" not in _told("ip -4 route") and _laid(cable, board):
            return cable
    raise AssertionError(f"no free network for a board in {_ATTEMPTS} attempts")


def _laid(cable: Cable, board: int) -> bool:
    add = f"ip link add {cable.desk_interface} type veth peer name {cable.board_interface} netns {board}"
    if subprocess.run(shlex.split(add), capture_output=True, check=False, timeout=_CABLE_LIMIT_S).returncode:
        return False
    _told(f"ip addr add {cable.desk_address}/30 dev {cable.desk_interface}")
    _told(f"ip link set {cable.desk_interface} up")
    return True


def _told(command: str) -> str:
    done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True, timeout=_CABLE_LIMIT_S)
    return done.stdout


ROOT = Path(__file__).resolve().parent.parent

_PORT, _HOME_BYTES = 2222, 512 << 20
_LIMIT_S = 120.0
#: What is entered of a board: its root too, which in a changed root is not that of its mounts.
_INSIDE = ("-r", "-m", "-n", "-u")
_TOOLS = ("ssh", "ssh-keygen", "ip", "unshare", "nsenter", "setpriv", "mount")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@cache
def board_obstacle() -> str | None:
    missing = [name for name in _TOOLS if shutil.which(name, path=_PATH) is None] + ([] if SSHD else ["sshd"])
    if missing:
        return f"there is no {missing[0]}; {INSTALL}"
    if os.geteuid() != 0:
        return "namespaces with a network of their own need root"
    if not own_mounts():
        return "this machine allows no mounts of one's own"
    attempt = "mount -t tmpfs none /mnt && ip link add board0 type veth peer name board1"
    command = [*own_mounts(), "--net", "--uts", "--ipc", "--pid", "--fork", "sh", "-c", attempt]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    return f"this machine allows no namespaces ({told.stderr.strip()})" if told.returncode else None


class NamespaceBoard:
    hostname: str
    address: str
    desk_address: str
    #: The desk's end of its cable.
    interface: str

    def __init__(
        self,
        *,
        sys_tree: Path | None = None,
        rootfs: Path | None = None,
        clock: bool = False,
        without: str = "",
    ) -> None:
        # Not below /tmp, which a board has for itself.
        self._work = new_work_folder("/var/tmp")
        self.folder = self._work.path
        self._root = Path("/") if rootfs is None else self.folder / "root"
        self.home = self.folder / "home"
        self.machine_id = secrets.token_hex(16)
        self.boot_id = ""
        self._kernel: subprocess.Popen[bytes] | None = None
        self._session: subprocess.Popen[bytes] | None = None
        try:
            self._new_kernel(rootfs)
            self._plug_in()
            self._furnish(sys_tree)
            self._hide(without)
            self.files = SshdFiles(folder=self.folder, address=self.address, port=_PORT, user="root")
            self.files.write(clock_variables(self.folder) if clock else {})
            self._boot()
        except BaseException:
            self.stop()
            raise

    # Reaching it

    def reach(self) -> Reach:
        return self.files.reach()

    def run(self, *command: str, stdin: str | None = None, limit_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command on it directly, past ssh; a status other than 0 is no error."""
        words = ["env", "-i", f"PATH={_PATH}", f"HOME={self.home}", "sh", "-c", 'cd "$HOME" && exec "$@"', "sh"]
        inside = ["nsenter", "-t", str(self._init()), *_INSIDE, "-i", "-p", *words, *command]
        return subprocess.run(inside, input=stdin, capture_output=True, text=True, check=False, timeout=limit_s)

    def outside(self, path: str | Path) -> Path:
        """A path of this machine for one of the board, absolute or below its home."""
        return Path(f"/proc/{self._init()}/root") / (self.home / path).relative_to("/")

    def bring_suite(self, bundle: Path) -> None:
        """Put a bundle there, and let it be used."""
        place = self.outside(".local/share/perfsuite/bundle")
        shutil.copytree(bundle, place / bundle.name)
        (place / "current").symlink_to(bundle.name)

    # Faults

    def link_down(self) -> None:
        self._in_kernel(f"ip link set {self._own_interface} down")

    def link_up(self) -> None:
        self._in_kernel(f"ip link set {self._own_interface} up")
        self._await(self._listens, "has its network again")

    def reboot(self, *, cut: bool = False) -> None:
        """End all its processes at once and start it anew; with `cut`, the desk hears nothing of that."""
        if cut:
            self.link_down()
        self._halt()
        if cut:
            self._in_kernel(f"ip link set {self._own_interface} up")
        self._boot()

    def change_host_key(self) -> None:
        self.files.new_host_key()
        self._restart_sshd()

    def fill_disk(self, free_bytes: int = 0) -> None:
        free = shutil.disk_usage(self.outside(self.home)).free - free_bytes
        told = self.run("fallocate", "-l", str(max(free // 4096 * 4096, 4096)), ".filler")
        assert told.returncode == 0, told.stderr

    def free_disk(self) -> None:
        self.outside(".filler").unlink(missing_ok=True)

    def set_clock(self, offset_s: float) -> None:
        """Let its date be wrong by so much, in running processes, too; it needs ``clock=True`` at the start."""
        rate = self.folder / "clock"
        assert rate.exists(), "a board whose clock is to be set starts with clock=True"
        rate.write_text(f"{offset_s:+f}\n")

    def kill(self, pattern: str, signal_number: int = signal.SIGKILL) -> int:
        """Signal its processes whose command line has a match; return how many."""
        found = self.processes(pattern)
        for pid in found:
            os.kill(pid, signal_number)
        return len(found)

    def processes(self, pattern: str = "") -> tuple[int, ...]:
        """Its processes whose command line has a match, as this machine counts them; not its init."""
        return processes_beside(self._init(), pattern)

    def use_shell(self, shell: str) -> None:
        self._in_kernel(f"sed -i 's|^\\(root:.*:\\)[^:]*$|\\1{shell}|' {self._root}/etc/passwd")

    # Its life

    def stop(self) -> None:
        """End it; nothing of it is left. Twice is as once."""
        if self._session is not None:
            self._halt()
        if self._kernel is not None:
            end_process(self._kernel)
        self._session = self._kernel = None
        self._work.remove()

    def _new_kernel(self, rootfs: Path | None) -> None:
        """Start what outlives reboots: the network, the disks, the name."""
        self._kernel = start_process(*own_mounts(), "--net", "--uts", "--ipc", "sleep", "infinity")
        own = os.readlink("/proc/self/ns/uts")
        self._await(lambda: os.readlink(f"/proc/{self._kernel_pid}/ns/uts") != own, "has namespaces")
        user = f"s|^root:\\([^:]*:[^:]*:[^:]*:[^:]*\\):[^:]*:[^:]*$|root:\\1:{self.home}:/bin/bash|"
        self._in_kernel(
            f"ip link set lo up; cd {self.folder}; mkdir home system; "
            "mount -t tmpfs -o size=80m,mode=755 board system; "
            f"mount -t tmpfs -o size={_HOME_BYTES},mode=700 board home; "
            + ("cp -a /etc system/etc; mount --bind system/etc /etc" if rootfs is None else self._overlay(rootfs))
            + f"; cd {self._root}/etc; echo {self.machine_id} >machine-id; sed -i '{user}' passwd"
        )

    def _overlay(self, rootfs: Path) -> str:
        """Lay what the board writes over another system's files, with what it shares with this machine in them."""
        layers = f"lowerdir={rootfs},upperdir=system/upper,workdir=system/work"
        there = f"root{self.folder}"
        shared = "; ".join(f"mount --bind {name} {there}/{name}" for name in ("system", "home"))
        return (
            f"mkdir root system/upper system/work; mount -t overlay -o {layers} board root; "
            f"mkdir -p {there}; mount --bind . {there}; {shared}; mount --rbind /dev root/dev"
        )

    def _plug_in(self) -> None:
        cable = plug_in(self._kernel_pid)
        self.interface, self.desk_address, self.address = cable.desk_interface, cable.desk_address, cable.board_address
        self._own_interface, self.hostname = cable.board_interface, cable.board_interface.replace("psb", "board")
        there = f"ip addr add {self.address}/30 dev {self._own_interface}; ip link set {self._own_interface} up"
        self._in_kernel(f"hostname {self.hostname}; {there}; ip route add default via {self.desk_address}")

    def _furnish(self, sys_tree: Path | None) -> None:
        if sys_tree is not None:
            self._in_kernel("\n".join(sys_mounts(sys_tree.resolve(), self.folder / "system" / "sys")))
        if self._root != Path("/"):
            self._in_kernel(f"mount --rbind /sys {self._root}/sys")

    def _hide(self, libraries: str) -> None:
        """Lay a folder over each that has one of this machine's libraries, in which it is not."""
        found = sorted(Path("/usr/lib").rglob(libraries)) if libraries else []
        for at, folder in enumerate(dict.fromkeys(each.parent for each in found)):
            layer = self.folder / "system" / f"hidden-{at}"
            gone = "; ".join(f"mknod {layer}/upper/{each.name} c 0 0" for each in found if each.parent == folder)
            self._in_kernel(
                f"mkdir -p {layer}/upper {layer}/work; {gone}; "
                f"mount -t overlay -o lowerdir={folder},upperdir={layer}/upper,workdir={layer}/work board {folder}"
            )

    def _boot(self) -> None:
        """Start what a reboot ends: processes, /run, /tmp; its init keeps sshd running."""
        self.boot_id = str(uuid.uuid4())
        script = "\n".join(
            (
                "set -e",
                f"echo {self.boot_id} >{self.folder}/system/boot_id",
                f"mount --bind {self.folder}/system/boot_id /proc/sys/kernel/random/boot_id",
                *_own_tmp(self.folder),
                "for each in /run /dev/shm; do mount -t tmpfs -o mode=1777 board $each; done",
                "mkdir -m 755 /run/sshd /run/lock",
                f"while :; do {shlex.join(self.files.command)} || :; sleep 0.1; done",
            )
        )
        inside = ["nsenter", "-t", str(self._kernel_pid), *_INSIDE, "-i"]
        root = () if self._root == Path("/") else ("--root", str(self._root))
        unshared = [*own_mounts(), "--pid", "--fork", "--kill-child", *root, "--mount-proc", "sh", "-c", script]
        self._session = start_process(*inside, *unshared)
        self._await(self._listens, "listens")

    def _halt(self) -> None:
        assert self._session is not None
        if (init := child_of(self._session.pid)) is not None:
            os.kill(init, signal.SIGKILL)  # what made it ends when all of its namespace are gone
            self._session.wait(_LIMIT_S)
        end_process(self._session)

    def _restart_sshd(self) -> None:
        listener = self.processes(r"^sshd: .*\[listener\]|^/\S*sshd -D")
        for pid in listener:
            os.kill(pid, signal.SIGKILL)
        self._await(lambda: not set(listener) & set(self.processes()) and self._listens(), "listens again")

    def _init(self) -> int:
        """Its process 1, as this machine counts it: the only child of what made its namespace."""
        assert self._session is not None, "the board is stopped"
        init = child_of(self._session.pid)
        assert init is not None, "the board is down"
        return init

    @property
    def _kernel_pid(self) -> int:
        assert self._kernel is not None
        return self._kernel.pid

    def _in_kernel(self, script: str) -> None:
        command = ["nsenter", "-t", str(self._kernel_pid), *_INSIDE, "sh", "-ec", script]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        assert told.returncode == 0, told.stderr

    def _listens(self) -> bool:
        return has_sshd(self.address, _PORT)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _LIMIT_S
        while not condition():
            for process in (self._kernel, self._session):
                if process is not None and process.poll() is not None:
                    assert process.stderr is not None
                    raise AssertionError(f"the board died before it {what}: {process.stderr.read().decode()}")
            assert time.monotonic() < end, f"no board that {what} within {_LIMIT_S} s"
            time.sleep(0.02)


def _own_tmp(folder: Path) -> list[str]:
    """Give it a /tmp of its own, in which a checkout below this machine's /tmp still is."""
    empty = "mount -t tmpfs -o mode=1777 board /tmp"
    if not ROOT.is_relative_to("/tmp"):
        return [empty]
    kept = folder / "system" / "checkout"
    return [f"mkdir -p {kept}; mount --bind {ROOT} {kept}", empty, f"mkdir -p {ROOT}; mount --bind {kept} {ROOT}"]
