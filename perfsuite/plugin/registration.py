"""The options as pytest takes them: each by a name that no other plugin has, and by a short one where that is free."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from perfsuite.option_table import INI_VALUES, OPTIONS, SHAPE_OPTIONS, own_name

#: What the suite's options are called together.
GROUP = "perfsuite"

#: Options of all runs by which a hunt for shapes may end otherwise.
_SHARED = ("--perf-opencl-platform", "--threads", "--perf-margin", "--baseline-dir")

#: The short names that other plugins have.
TAKEN_KEY = pytest.StashKey[tuple[str, ...]]()


def usable_name(config: pytest.Config, name: str) -> str:
    """Return the name by which an option can be given here: its own where another plugin has the short one."""
    return own_name(name) if name in config.stash.get(TAKEN_KEY, ()) else name


def attribute_of(name: str) -> str:
    """Return the attribute that holds the value of an option, by either name."""
    return own_name(name).removeprefix("--").replace("-", "_")


def value_of(option: argparse.Namespace, name: str) -> Any:
    """Return what an option was given, by either name."""
    return getattr(option, attribute_of(name))


def given_options(config: pytest.Config) -> tuple[str, ...]:
    """Return the options by which a hunt for shapes is repeated, as they were given, except the seed."""
    values = {name: value_of(config.option, name) for name in ("--perf-shapes", *SHAPE_OPTIONS, *_SHARED)}
    values["--baseline"] = "off" if config.option.perf_baseline == "off" else None
    return tuple(f"{usable_name(config, name)}={value}" for name, value in values.items() if value is not None)


def add_options(parser: pytest.Parser) -> None:
    """Register the options by their own names, and the ini values."""
    group = parser.getgroup(GROUP, "performance regression of on-device LLM inference")
    for name, settings in OPTIONS.items():
        group.addoption(own_name(name), **_asking(settings))
    for name, help_text in INI_VALUES.items():
        if name == "perf_margin":  # may have kinds
            parser.addini(name, help_text, type="string", default=None)
        else:
            parser.addini(name, help_text, type="float", default=None)


def add_short_names(parser: pytest.Parser) -> tuple[str, ...]:
    """Register the short names that are free, and return the others; no plugin may come later."""
    groups = (parser._anonymous, *parser._groups)  # pytest 8.4 to 9.2 says by nothing else what is registered
    known = {name for group in groups for option in group.options for name in option.names()}
    taken = tuple(name for name in OPTIONS if name != own_name(name) and name in known)
    group = parser.getgroup(GROUP)
    for name, settings in OPTIONS.items():
        if name != own_name(name) and name not in taken:
            short = {**_asking(settings), "help": f"short for {own_name(name)}"}
            group.addoption(name, dest=attribute_of(name), **short)
    return taken


def _asking(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an option with which a mistyped choice is answered by the nearest."""
    if "choices" not in settings:
        return settings
    choices = settings["choices"]

    def chosen(text: str) -> str:
        if text in choices:
            return text
        from perfsuite.errors import meant  # only a mistake needs it

        listed = ", ".join(map(repr, choices))
        raise argparse.ArgumentTypeError(f"invalid choice: {text!r} (choose from {listed}){meant(text, choices)}")

    others = {name: value for name, value in settings.items() if name != "choices"}
    return {**others, "type": chosen, "metavar": "|".join(choices)}
