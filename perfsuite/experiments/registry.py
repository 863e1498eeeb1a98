"""The experiments that a run may ask for: the suite's own, a line each, and those that other wheels bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig

#: The group of entry points by which another wheel brings experiments.
GROUP = "perfsuite.experiments"

#: The suite's own, each with what of a run asks for it: folders with a module ``experiment``, whose
#: ``open_experiments(config, forecasts)`` opens it. A run loads those alone. To add one, add a folder and a line.
OWN: Mapping[str, Callable[[RunConfig], object]] = {
    "fidelity": lambda config: config.fidelity,
    "overhead": lambda config: config.overhead,
    "tracing": lambda config: config.trace,
    "shapes": lambda config: config.shapes,
    "counted": lambda config: config.counts is not None,
}


def open_experiments(config: RunConfig, forecasts: Forecasts) -> tuple[Experiment, ...]:
    """Return the experiments that the run asks for; nothing is measured yet.

    Raises `PerfsuiteError` where an experiment's options are wrong, or nobody brings one that was named.
    """
    asked = (name for name, is_asked in OWN.items() if is_asked(config))
    own = (import_module(f"perfsuite.experiments.{name}.experiment") for name in asked)
    found = [each for module in own for each in module.open_experiments(config, forecasts)]
    for name in config.experiments:
        found += _brought(name, config, forecasts)
    return tuple(found)


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
