"""An address as a user writes it, with the way by which it is reached: ``ssh:user@board:2222``."""

from __future__ import annotations

import re
from dataclasses import replace

from perfsuite.device.profile.values import BAUD_RULE, PORT_RULE, Address, Baud, Port, takes
from perfsuite.device.reach import HOMES, TAKEN, WAYS, Reach
from perfsuite.errors import DeviceError

#: What is accepted, in words for messages.
ACCEPTED = f"accepted are {TAKEN}"

#: A host of ssh: an IPv6 address has brackets, for it could end in a port otherwise.
_HOST = re.compile(r"(?:\[(?P<ipv6>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[^:]*))?")
_PORT = re.compile(r"[0-9]{1,5}")


def reach_of(text: str, reach: Reach = Reach()) -> Reach:  # noqa: B008 -- it is frozen
    """Return the way that ``WAY``, ``WAY:ADDRESS`` or ``USER@HOST`` names; keys and folders are those of `reach`.

    Raises DeviceError: there is no such way, or it takes no such address; the line begins with the text.
    """
    way, _, address = text.partition(":")
    if "@" in way:
        return _by_ssh(text, text, reach)
    if way not in WAYS:
        raise _refused(text, f"{way!r} is not a way to a device")
    if way == "ssh":
        return _by_ssh(text, address, reach)
    if way == "serial":
        return _by_serial(text, address, reach)
    if way == "local" and address:
        raise _refused(text, "this machine has no address")
    if not takes(Address, address):
        raise _refused(text, f"{address!r} is not a serial number of adb")
    return replace(reach, way=way, address=address, port=None, home=_home(way, reach))


def asked_reach(option: str, text: str | None, reach: Reach = Reach()) -> Reach:  # noqa: B008 -- as above
    """Return the way that an option's value names, with keys and folders of `reach`; None is `reach` itself.

    Raises DeviceError: as of `reach_of`; the line names the option.
    """
    if text is None:
        return reach
    try:
        return reach_of(text, reach)
    except DeviceError as error:
        raise DeviceError(f"{option}={error}") from None


def _by_ssh(text: str, told: str, reach: Reach) -> Reach:
    user, at, place = told.rpartition("@")
    found = _HOST.fullmatch(place)
    if found is None:
        raise _refused(text, f"{place!r} is not a host of ssh; an IPv6 address is written in brackets: ssh:[fe80::1]")
    host = found["ipv6"] or found["name"]
    address = f"{user}{at}{host}"
    if not host or (at and not user) or "/" in address or not takes(Address, address):
        raise _refused(text, f"{told!r} is not an address for ssh")
    port = found["port"]
    if port is not None and not (_PORT.fullmatch(port) and takes(Port, int(port))):
        raise _refused(text, f"{port!r} is not a port, which is {PORT_RULE}")
    return replace(
        reach, way="ssh", address=address, port=None if port is None else int(port), home=_home("ssh", reach)
    )


def _by_serial(text: str, told: str, reach: Reach) -> Reach:
    address, comma, rate = told.partition(",")
    if "/" not in address or not takes(Address, address):
        raise _refused(text, f"{address!r} is not a serial port")
    if comma and not (rate.isdecimal() and takes(Baud, int(rate))):
        raise _refused(text, f"{rate!r} is not {BAUD_RULE}")
    baud = int(rate) if comma else reach.baud
    return replace(reach, way="serial", address=address, port=None, baud=baud, home=_home("serial", reach))


def _home(way: str, reach: Reach) -> str:
    """Return the folder on the device: the usual one of the way, where that before had its own usual one."""
    return HOMES[way] if reach.home == HOMES[reach.way] else reach.home


def _refused(text: str, why: str) -> DeviceError:
    return DeviceError(f"{text if text.isprintable() else repr(text)}: {why}; {ACCEPTED}")
