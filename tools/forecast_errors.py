"""Says how far a run's forecasts are from what it measured: forecast over measured, by phase and by operator.

    python tools/forecast_errors.py .perfsuite/runs/*/run.json

Both are of one run, so that what differs from one hour to the next is in neither. Beside them stands the limit of SLOW
over what was measured. Operators shorter than --least-us are left out, for a wake-up decides what they take.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from perfsuite.errors import PerfsuiteError
from perfsuite.records.outcome import Judgement
from perfsuite.report.run_file import read_run_file
from perfsuite.units import format_ns

_US_NS = 1_000


def main(words: Sequence[str] | None = None) -> None:
    """Print the ratios of each run that is named."""
    options = _options(words)
    for path in options.runs:
        run = read_run_file(path)
        print(f"{path}: {run.workload}")
        known = [each for each in run.judgements if each.measured_ns and each.expected_ns]
        _print_rows([each for each in known if each.kind == "phase"])
        _print_operators([each for each in known if each.kind == "operator"], options.least_us * _US_NS)


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN.json")
    parser.add_argument("--least-us", type=float, default=20.0, metavar="N", help="shortest operator (default 20)")
    return parser.parse_args(words)


def _print_operators(operators: Sequence[Judgement], least_ns: float) -> None:
    by_phase: dict[str, list[Judgement]] = defaultdict(list)
    for each in operators:
        if (each.measured_ns or 0) >= least_ns:
            by_phase[each.case_id.split("/")[-2]].append(each)
    for phase, found in by_phase.items():
        _print_rows(found)
        print(f"  {phase}: {_median_error(found)}")
    print(f"  all: {_median_error([each for found in by_phase.values() for each in found])}")


def _print_rows(judgements: Sequence[Judgement]) -> None:
    for each in sorted(judgements, key=_ratio):
        assert each.measured_ns
        limit = "" if each.limit_ns is None else f", limit {each.limit_ns / each.measured_ns:.2f}"
        print(f"  {_ratio(each):6.2f}  {each.case_id}  {format_ns(each.measured_ns)}{limit}")


def _ratio(judgement: Judgement) -> float:
    """Return forecast over measured."""
    assert judgement.expected_ns
    assert judgement.measured_ns
    return judgement.expected_ns / judgement.measured_ns


def _median_error(found: Sequence[Judgement]) -> str:
    if not found:
        return "no operator is long enough"
    return f"{len(found)} operators, the median is {median(abs(_ratio(each) - 1.0) for each in found):.1%} off"


if __name__ == "__main__":
    try:
        main()
    except PerfsuiteError as error:
        sys.exit(f"forecast_errors: {error}")
