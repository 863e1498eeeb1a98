"""The cable between a test board and this machine: a pair of interfaces on addresses that nobody else has here."""

from __future__ import annotations

import random
import shlex
import subprocess
from typing import NamedTuple

_CABLE_LIMIT_S = 20.0
_ATTEMPTS = 20


class Cable(NamedTuple):
    """Both ends of a cable."""

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
