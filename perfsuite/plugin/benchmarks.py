"""Cases as benchmarks of pytest-benchmark, which has their samples as its rounds; loaded where that plugin is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from perfsuite.plugin.fixtures import Perf, perf_of
from perfsuite.records.outcome import Judgement

#: What asks for pytest-benchmark's own table.
_ASKED = ("benchmark_compare", "benchmark_histogram", "benchmark_verbose", "benchmark_only")


def pytest_configure(config: pytest.Config) -> None:
    """Leave out pytest-benchmark's own table of all cases, unless something was asked of it."""
    if config.option.benchmark_skip:
        raise pytest.UsageError("--benchmark-skip: skips every case that --device would measure; leave one of them out")
    if not any(getattr(config.option, name, None) for name in _ASKED):
        config.option.benchmark_quiet = True


@pytest.fixture
def perf(request: pytest.FixtureRequest, benchmark: Any) -> Iterator[Perf]:
    """Judge performance cases, each of which is a benchmark under its id."""

    def add_samples(judgement: Judgement) -> None:
        """Have nothing timed, and the samples as its times, s."""
        benchmark.name = benchmark.fullname = judgement.case_id
        benchmark.group = judgement.kind
        benchmark.extra_info["outcome"] = judgement.outcome.value
        benchmark.pedantic(lambda: None)
        if benchmark.stats is not None:  # with --benchmark-disable it is
            benchmark.stats.stats.data[:] = [sample_ns / 1e9 for sample_ns in judgement.samples_ns]

    yield perf_of(request, add_samples)
    benchmark.skipped = True  # or it warns of what has no samples
