"""How the board of a place is reached: its NetworkService, as labgrid exports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeGuard

from perfsuite.device.farm.client import Client
from perfsuite.device.profile.values import ADDRESS, PORT
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError

_KIND = "NetworkService"
_PLAIN = "letters, digits and . _ - : % [ ] +"


def place_reach(client: Client, place: str, reach: Reach) -> Reach:
    """Return the way to a board that is locked: keys and folders of `reach`, address and port of the place.

    Raises DeviceError: the place has no NetworkService, several, or one whose address, user or port cannot be.
    """
    found = list(services(client.call("-p", place, "env")))
    if len(found) != 1:
        raise DeviceError(
            f"place {place} has {len(found)} resources of the kind {_KIND}, expected 1; "
            f"see 'labgrid-client -p {place} show'"
        )
    address, port, username = (found[0].get(name) for name in ("address", "port", "username"))
    told = f"place {place}: the {{0}} of its {_KIND} is {{1!r:.60}}, expected {{2}}"
    if not _is_name(address):
        raise DeviceError(told.format("address", address, f"the name of a host: {_PLAIN}"))
    if username is not None and username != "" and not _is_name(username):
        raise DeviceError(told.format("username", username, f"the name of a user: {_PLAIN}"))
    if port is not None and not PORT.takes(port):
        raise DeviceError(told.format("port", port, PORT.told))
    return replace(reach, way="ssh", address=f"{username}@{address}" if username else address, port=port)


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value != "" and "@" not in value and ADDRESS.takes(value)


def services(printed: str) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of each NetworkService of an environment that ``labgrid-client env`` printed."""
    yaml: Any = import_module("yaml")  # labgrid brings it
    try:
        targets = yaml.safe_load(printed)["targets"].values()
        resources = [resource for target in targets for resource in target["resources"]]
        yield from (each[_KIND] for each in resources if _KIND in each)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(f"labgrid: 'env' printed what cannot be read ({type(error).__name__})") from error
