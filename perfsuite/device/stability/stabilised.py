"""Waits until a device is cool enough for a run to begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.thermal_zones import Temperatures, Zone, find_zones, read_temperatures

#: Between two looks.
_PERIOD_S = 5.0
#: Looks at which nothing could be read before it is given up, for a busy sensor answers EAGAIN.
_BLIND_LOOKS = 3
#: So many equal readings of a zone that does not cool are suspicious.
_STUCK_LOOKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooled:
    """What came of waiting."""

    notes: tuple[str, ...] = ()
    #: Why what is measured now is INVALID.
    problem: str | None = None


def wait_until_cool(
    conditions: Conditions, *, root: Path, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Cooled:
    """Wait until the hottest zone that counts is below ``start_below_celsius``, for ``cooling_limit_s`` at most.

    Zones that read nonsense are left out and reported. Where no zone can be read it waits for nothing, and reports
    that.
    """
    limit_celsius = conditions.start_below_celsius
    if limit_celsius is None:
        return Cooled()
    zones = find_zones(root, conditions.thermal_zones)
    notes = _missing(conditions, zones)
    began_s = clock()
    looks: list[Temperatures] = []
    while True:
        looks.append(read_temperatures(zones))
        hottest, waited_s = looks[-1].hottest, clock() - began_s
        if hottest is not None and hottest[1] < limit_celsius:
            return Cooled(notes=(*notes, *_unread(looks[-1]), *_waited(waited_s, hottest, limit_celsius)))
        is_blind = not any(look.read for look in looks) and (not zones or len(looks) >= _BLIND_LOOKS)
        if is_blind or (hottest is None and waited_s >= conditions.cooling_limit_s):
            return Cooled(notes=(*notes, _blind(zones)))
        if hottest is not None and waited_s >= conditions.cooling_limit_s:
            problem = f"{_too_hot(hottest, limit_celsius, waited_s)}{_stuck(looks, hottest)}"
            return Cooled(notes=(*notes, *_unread(looks[-1])), problem=problem)
        sleep(max(0.0, min(_PERIOD_S, conditions.cooling_limit_s - waited_s)))


def _missing(conditions: Conditions, zones: tuple[Zone, ...]) -> tuple[str, ...]:
    missing = [name for name in conditions.thermal_zones if name not in {zone.name for zone in zones}]
    return (f"no thermal zone is called {', '.join(missing)}; the others count",) if missing and zones else ()


def _unread(look: Temperatures) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(look.unread))
    return (f"thermal zones that read no sensible temperature are left out: {names}",) if names else ()


def _waited(waited_s: float, hottest: tuple[str, float], limit_celsius: float) -> tuple[str, ...]:
    if waited_s < 1:
        return ()
    return (f"waited {waited_s:.0f} s until {hottest[0]} was at {hottest[1]:.1f} °C, below {limit_celsius:g} °C",)


def _blind(zones: tuple[Zone, ...]) -> str:
    names = ", ".join(dict.fromkeys(zone.name for zone in zones))
    found = f"none of {names} reads a sensible one" if zones else "no thermal zone that counts is there"
    return f"the temperature is not known ({found}); the run began without waiting for it"


def _too_hot(hottest: tuple[str, float], limit_celsius: float, waited_s: float) -> str:
    return (
        f"too hot to begin: {hottest[0]} is at {hottest[1]:.1f} °C after {waited_s:.0f} s, "
        f"not below {limit_celsius:g} °C; cool the device or raise start_below_celsius"
    )


def _stuck(looks: list[Temperatures], hottest: tuple[str, float]) -> str:
    """Tell of a sensor that has never changed its reading: it may be broken, which cannot be known."""
    if len(looks) < _STUCK_LOOKS or not all(hottest in look.read for look in looks):
        return ""
    return f" ({hottest[0]} has read the same all the time, as a stuck sensor does: leave it out of thermal_zones)"
