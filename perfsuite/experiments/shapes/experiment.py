"""``--perf-shapes``: hunts for shapes that break a property, and the shapes that earlier hunts have kept."""

from __future__ import annotations

from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.shapes.hunts import ShapeHunts
from perfsuite.experiments.shapes.judges import ShapeJudges
from perfsuite.experiments.shapes.kept_group import open_kept


def open_experiments(config: RunConfig, forecasts: Forecasts) -> tuple[Experiment, ...]:
    """Return the kept shapes and the hunts where ``--perf-shapes`` asks for them.

    Raises `PerfsuiteError` where what was kept cannot be read.
    """
    if config.shapes is None:
        return ()
    judges = ShapeJudges(config=config, request=config.shapes, ceilings=lambda: forecasts.best_ceilings)
    hunts = ShapeHunts(config=config, request=config.shapes, judges=judges)
    return open_kept(config, config.shapes, judges), hunts
