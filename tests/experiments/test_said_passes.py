"""Passes that the engine says, against those that the suite counts itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import compose, passes_of
from perfsuite.expectation.requests.subject import EngineSubject, Optimisations, Subject
from perfsuite.experiments.said_passes import SaidPasses
from perfsuite.workload.catalog import find
from perfsuite.workload.model_shape import shape_of


@pytest.mark.parametrize("chunk", [None, 64])
def test_what_the_engine_says_costs_what_the_suite_counts(engine_cache: Path, chunk: int | None) -> None:
    """Prompt and steps of a family's model cost the same by both, in one chunk and in several, over two cache sizes."""
    architecture = replace(find("smollm2-135m").with_layers(2), n_vocab=4096)
    optimisations = Optimisations(quantization="q8_0", chunk=chunk)
    said = SaidPasses(
        EngineSubject(name="said", model=shape_of(architecture)), optimisations, 150, 120, 3, engine_cache
    )
    known = passes_of(Subject(architecture=architecture), optimisations, Conventions.ENGINE)
    found, expected = (compose(each, 150, 120) for each in (said, known))
    assert found.prefill.total.flops == expected.prefill.total.flops
    assert found.prefill.total.moved_bytes == pytest.approx(expected.prefill.total.moved_bytes, rel=1e-3)
    assert list(found.decode.total.flops) == list(expected.decode.total.flops)
    assert list(found.decode.total.parameter_bytes) == list(expected.decode.total.parameter_bytes)
    assert said.decode(150, 120, 4).total.flops.sum() == known.decode(150, 120, 4).total.flops.sum()
