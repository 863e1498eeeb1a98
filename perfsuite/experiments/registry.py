"""The experiments that a run can ask for, by name: a run loads those alone that it asks for.

To add one, add a folder with a module ``experiment`` and a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.records.case import KERNELS

if TYPE_CHECKING:
    from perfsuite.experiments.forecasts import Forecasts
    from perfsuite.experiments.stored import StoredBaselines

#: The group of entry points by which another wheel brings experiments.
GROUP = _HERE = "perfsuite.experiments"

#: The suite's own, in the order in which they are measured, each with what of a run asks for it: folders whose module
#: ``experiment`` has ``open_experiments(config, forecasts, stored)``.
OWN: Mapping[str, Callable[[RunConfig], object]] = {
    "phases": lambda config: config.is_timed,
    "binding": lambda config: config.is_timed,
    "kernels": lambda config: config.is_timed and not config.is_against and KERNELS not in config.left_out,
    "roofline": lambda config: config.sweeps,
    "fidelity": lambda config: config.fidelity,
    "overhead": lambda config: config.overhead,
    "tracing": lambda config: config.trace,
    "shapes": lambda config: config.shapes,
    "counted": lambda config: config.counts is not None,
}


#: Those that look at the board before cases are enumerated: their modules have ``prepared``.
_PREPARED = ("phases", "kernels")


def load(experiment: str) -> Any:
    """Load an experiment's module."""
    return import_module(f"{_HERE}.{experiment}.experiment")


def prepared(config: RunConfig, stored: StoredBaselines, *, is_measured: bool) -> RunConfig:
    """Return a run with what its board and its baselines say of it before cases are enumerated.

    Raises PerfsuiteError: the board cannot answer, or what is stored cannot be read.
    """
    for name in _PREPARED:
        config = load(name).prepared(config, stored, is_measured=is_measured)
    return config


def open_experiments(
    config: RunConfig, stored: StoredBaselines, *, asks_board: bool
) -> tuple[Forecasts, tuple[Experiment, ...]]:
    """Return what a run expects, and the experiments that it asks for; nothing is measured yet.

    Raises `PerfsuiteError` where an experiment's options are wrong, or nobody brings one that was named.
    """
    forecasts = import_module(f"{_HERE}.forecasts").open_forecasts(config, asks_board=asks_board)
    return forecasts, tuple(_opened(config, forecasts, stored))


def _opened(config: RunConfig, forecasts: Forecasts, stored: StoredBaselines) -> Iterator[Experiment]:
    for name, is_asked in OWN.items():
        if is_asked(config):
            yield from load(name).open_experiments(config, forecasts, stored)
    for name in config.experiments:
        yield from _brought(name, config, forecasts)


def _brought(name: str, config: RunConfig, forecasts: Forecasts) -> tuple[Experiment, ...]:
    """Open the experiments of an entry point; one that cannot be loaded is an error with its name."""
    installed = entry_points(group=GROUP)
    if name not in installed.names:
        known = ", ".join(sorted(installed.names)) or "none is installed"
        told = f"known: {known}{meant(name, installed.names)}"
        raise PerfsuiteError(f"--perf-experiment={name}: no installed package brings it; {told}")
    entry = installed[name]
    try:
        opened = entry.load()(config, forecasts)
    except PerfsuiteError:
        raise
    except Exception as error:
        raise PerfsuiteError(f"--perf-experiment={name}: {entry.value} failed: {error!r}") from error
    return tuple(opened)
