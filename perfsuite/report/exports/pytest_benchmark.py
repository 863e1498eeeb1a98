"""A run as pytest-benchmark saves one, for ``pytest-benchmark compare`` and what else reads its JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from perfsuite.errors import require
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports import Export
from perfsuite.report.run_writer import plain_case, run_facts
from perfsuite.units import NS_PER_S

_EXTRA_INFO = (
    *("outcome", "reason", "tokens_per_s", "floor_ns", "expected_ns", "limit_ns", "baseline_ns"),
    *("change_ratio", "lower_ratio", "upper_ratio", "resolution_ratio"),
)


def pytest_benchmark_text(run: RunFile) -> str:
    """Return the JSON of a run: each case with samples is a benchmark under its id, in the group of its kind.

    A sample is a round of one iteration; all figures are pytest-benchmark's own. pytest-benchmark has no place for a
    case without samples, so these are counted under ``perfsuite`` alone.
    """
    require("pytest_benchmark", "pytest-benchmark")
    from pytest_benchmark import __version__

    measured, facts = [judgement for judgement in run.judgements if judgement.samples_ns], run_facts(run)
    plain = {
        "machine_info": _machine_info(run),
        "commit_info": _commit_info(run),
        "benchmarks": [_benchmark(judgement) for judgement in measured],
        "datetime": run.started_at,
        "version": __version__,
        "perfsuite": {
            **{name: facts[name] for name in ("run_id", "suite_version", "device", "workload", "engine", "against")},
            "outcomes": Counter(judgement.outcome.value for judgement in run.judgements),
            "n_cases_without_samples": len(run.judgements) - len(measured),
        },
    }
    return json.dumps(plain, indent=1) + "\n"


def _benchmark(judgement: Judgement) -> Mapping[str, Any]:
    plain = plain_case(judgement)
    return {
        "group": judgement.kind,
        "name": judgement.case_id,
        "fullname": judgement.case_id,
        "params": None,
        "param": None,
        "extra_info": {name: plain[name] for name in _EXTRA_INFO},
        "options": {},
        "stats": _stats(judgement.samples_ns),
    }


def _stats(samples_ns: tuple[int, ...]) -> Mapping[str, Any]:
    """Let pytest-benchmark compute its figures from seconds, as it does from its own timer."""
    from pytest_benchmark.stats import Stats

    stats = Stats()  # type: ignore[no-untyped-call]
    for sample_ns in samples_ns:
        stats.update(sample_ns / NS_PER_S)  # type: ignore[no-untyped-call]
    return {**stats.as_dict(), "data": stats.data, "iterations": 1}  # type: ignore[no-untyped-call]


def _machine_info(run: RunFile) -> Mapping[str, Any]:
    """Return what pytest-benchmark compares as a whole, and warns of where it differs."""
    host = next(iter(run.fingerprints.values()), {})
    return {
        "node": run.device,
        "machine": host.get("machine", ""),
        "processor": host.get("soc", ""),
        "cpu": {"brand_raw": host.get("soc", ""), "count": host.get("n_cores", "")},
        "fingerprint": {group: dict(fields) for group, fields in run.fingerprints.items()},
    }


def _commit_info(run: RunFile) -> Mapping[str, Any]:
    """Return the commit in pytest-benchmark's fields; ``unversioned`` is its own word for none."""
    commit = run.origin.commit
    return {
        "id": "unversioned" if commit is None else commit.sha,
        "time": None,
        "author_time": None,
        "dirty": commit is not None and commit.is_dirty,
        "project": run.workload,
        "branch": "(unknown)" if commit is None else commit.branch or "(detached head)",
    }


EXPORTS = (
    Export(
        name="pytest-benchmark",
        summary="JSON for pytest-benchmark compare and --benchmark-compare; one run",
        text=lambda runs: pytest_benchmark_text(*runs),
        takes_many=False,
        place=0,
    ),
)
