"""Values as options, ini values and markers give them: margins and other ratios, times, and lists of names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import pytest

from perfsuite.device.farm.request import length_s
from perfsuite.device.profile import Profile
from perfsuite.errors import meant
from perfsuite.experiments.run_config import NOTHING_SAID, KindMargins, Margins
from perfsuite.option_table import MARKER

_EXPECTED_RATIO = "expected a ratio between 0 and 1, such as 0.05"
_EXPECTED = f"{_EXPECTED_RATIO}, or ratios by kind, such as 0.05,phase=0.02"
_KIND = re.compile(r"[A-Za-z_][\w.-]*")


def asked_margins(config: pytest.Config, profile: Profile) -> Margins:
    """Return the margins that a run's sources give."""
    return Margins(
        command_line=parse_margins("--perf-margin=", config.option.perf_margin),
        ini=parse_margins("perf_margin = ", _ini_value(config, "perf_margin", _EXPECTED)),
        profile=KindMargins(by_kind_ratio=profile.margin_ratio),
    )


def parse_margins(name: str, text: str | None) -> KindMargins:
    """Read ``0.05``, ``phase=0.02,operator=0.1`` or both; `name` is the option as a message shows it.

    Raises pytest.UsageError: an entry is no ratio between 0 and 1, has no proper kind, or is there twice.
    """
    if not text:
        return NOTHING_SAID
    found: dict[str, float] = {}
    for entry in text.split(","):
        kind, is_named, value = entry.rpartition("=")
        kind = kind.strip()
        if is_named and not _KIND.fullmatch(kind):
            raise pytest.UsageError(f"{name}{text}: {kind!r} is not a kind of case; {_EXPECTED}")
        if kind in found:
            raise pytest.UsageError(f"{name}{text}: {kind or 'the margin of all kinds'} is there twice; {_EXPECTED}")
        found[kind] = _ratio(value, f"{name}{text}", _EXPECTED)
    return KindMargins(any_ratio=found.pop("", None), by_kind_ratio=MappingProxyType(found))


def asked_ratio(config: pytest.Config, name: str, default_ratio: float, *, may_be_zero: bool = False) -> float:
    """Return what the option `name` gives where there is one, or else the ini value of that name, or else the default.

    Raises pytest.UsageError: what is given is no ratio between 0 and 1, nor the 0 that switches it off where that may
    be.
    """
    expected = f"expected a ratio between 0 and 1, such as {default_ratio:g}{', or 0 for none' if may_be_zero else ''}"
    given, ini = config.getoption(name, None), _ini_value(config, name, expected)
    if given is None and ini is None:
        return default_ratio
    text, shown = (ini, f"{name} = {ini:g}") if given is None else (given, f"--{name.replace('_', '-')}={given}")
    return _ratio(text, shown, expected, may_be_zero=may_be_zero)


def _ini_value(config: pytest.Config, name: str, expected: str) -> Any:
    """Return a value of the configuration file; None where it has none.

    Raises pytest.UsageError: the value is of another type than the option has.
    """
    try:
        return config.getini(name)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{name}: {error}; {expected}") from None


def _ratio(text: str | float, shown: str, expected: str, *, may_be_zero: bool = False) -> float:
    """Read a ratio between 0 and 1, both excluded; a message shows `shown` and says what is `expected`."""
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not (0.0 < ratio < 1.0 or (may_be_zero and ratio == 0.0)):
        raise pytest.UsageError(f"{shown}: {expected}")
    return ratio


def marker_margin(item: pytest.Item) -> float | None:
    """Return the margin that the nearest ``perf`` marker of a test gives; None where none does.

    Raises pytest.UsageError: a marker of the test has other arguments than ``margin``, or a margin that is no ratio
    between 0 and 1.
    """
    given = [_marked(item, marker) for marker in item.iter_markers(MARKER)]
    return next((ratio for ratio in given if ratio is not None), None)


def _marked(item: pytest.Item, marker: pytest.Mark) -> float | None:
    where = f"{item.nodeid}: @pytest.mark.{MARKER}"
    unknown = [*(repr(value) for value in marker.args), *sorted(marker.kwargs.keys() - {"margin"})]
    if unknown:
        raise pytest.UsageError(f"{where}: {', '.join(unknown)} is not known; expected {MARKER}(margin=0.05)")
    if "margin" not in marker.kwargs:
        return None
    margin = marker.kwargs["margin"]
    if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not 0.0 < margin < 1.0:
        raise pytest.UsageError(f"{where}(margin={margin!r}): {_EXPECTED_RATIO}")
    return float(margin)


def asked_seconds(name: str, text: str) -> float:
    """Return the seconds that an option asks for; text that is no time is a `pytest.UsageError`."""
    asked_s = length_s(text)
    if not asked_s:
        raise pytest.UsageError(f"{name}={text}: expected a time such as 120s, 5m or 1h")
    return asked_s


def asked_names(name: str, text: str, known: Sequence[str], *, has_all: bool = True) -> tuple[str, ...]:
    """Return the names of a list, or all that are known for ``all``; an unknown one is a `pytest.UsageError`."""
    accepted = (*known, "all") if has_all else tuple(known)
    names = tuple(dict.fromkeys(text.replace(" ", "").split(",")))
    if unknown := [each for each in names if each not in accepted]:
        raise pytest.UsageError(
            f"{name}={text}: {unknown[0]!r} is unknown; accepted are {', '.join(accepted)}{meant(unknown[0], accepted)}"
        )
    return tuple(known) if has_all and "all" in names else names
