"""What an operator is expected to count: the work of its formula, times ratios that were fitted over sizes.

A kind is an operator with a type of weights. Products of one row and of more stand apart, as attention does that takes
a tile of queries at once, and what is stored element by element, for other code computes them. So do the rotations of
each architecture, whose angles decide how much a sine takes. What a kind counts grows with its calls, its rows, and the
terms of its sizes with which its time grows (`timing.features`). The ratios are in ``counted_ratios.json``, and hold
for the compiler and processor that were counted; ``tools/counted_ratios.py`` counts and fits again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from operator import add, mul
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.expectation.graph import Batch, Operator
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rule import row_terms
from perfsuite.expectation.op_rules import PRODUCTS, rule_of
from perfsuite.expectation.timing.features import family, features, shape_of
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import nonnegative_weights
from perfsuite.records.codec import Amount, Name, Size, read_json, to_plain
from perfsuite.records.counts import CountedWork
from perfsuite.records.events import Phase
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.records.whole_file import write_json

#: What is expected of an operator; other counts follow from these, or are not of its formula.
EXPECTED_METRICS = ("instructions", "bytes_read", "bytes_written")

_SCHEMA = 1
PATH = Path(__file__).with_name("counted_ratios.json")
_TODO = "run tools/counted_ratios.py"

#: Queries that fused attention takes at once. *Source*: ``ggml_fa_tile_config`` of llama-cpp-python 0.3.36.
_TILE = 64

#: The least that a count may differ by from what is expected.
_LEAST_MARGIN_RATIO = 0.01
#: A fit to one run fewer must know two sizes.
_LEAST_RUNS = 3
#: Twice the work would be no finding.
_MOST_ERROR_RATIO = 0.5
#: A role stands out where its error is beyond both: this share, and so many times the median one of its kind.
_FAR_RATIO, _FAR_TIMES = 0.05, 10.0
#: How often a fit trusts each count by the error that the last one left, and the least error that it trusts more.
_N_ROUNDS, _LEAST_ERROR = 15, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """What one kind of operator counts of one metric."""

    kind: Name
    metric: Name
    #: Of a call, a row, and each of its terms.
    weights: tuple[Amount, ...]
    #: The largest error, as a share of the count, of a run that the fit did not know, without roles that stand out from
    #: their kind; and of how many runs.
    error_ratio: Amount
    n_runs: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRatios:
    """Ratios, and the build that they hold for."""

    llama: Name
    compiler: Name
    processor: Name
    ratios: tuple[Ratio, ...]

    def holds_for(self, counted: CountedWork) -> bool:
        """Whether counts are of the same compiler and processor; another llama.cpp is what is judged."""
        return (self.compiler, self.processor) == (counted.compiler, counted.processor)

    def expected(self, terms: Mapping[str, Sequence[float]], metric: str) -> tuple[float, float] | None:
        """Return what work of some kinds is expected to count, and by what it may differ; None where a kind is unknown.

        It may differ by twice the largest error of the fit, and `_LEAST_MARGIN_RATIO` at least.
        """
        known = {ratio.kind: ratio for ratio in self.ratios if ratio.metric == metric}
        if not known.keys() >= terms.keys():
            return None
        parts = [(sum(map(mul, known[kind].weights, found)), known[kind].error_ratio) for kind, found in terms.items()]
        return sum(part for part, _ in parts), sum(
            part * max(_LEAST_MARGIN_RATIO, 2.0 * error) for part, error in parts
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleWork:
    """What the operators of one role do in a phase, layers and steps summed."""

    phase: Phase
    role: str
    cost: OpCost
    #: By kind, what its counts grow with.
    terms: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRole:
    """What a run counted of a role."""

    run: str
    terms: Mapping[str, tuple[float, ...]]
    counts: Mapping[str, int]


@cache
def known_ratios() -> CountedRatios:
    """Return the ratios of the build that the suite pins.

    Raises MeasurementError: their file was damaged.
    """
    return ratios_in(PATH)


def role_works(workload: LlamaWorkload) -> Iterator[RoleWork]:
    """Enumerate what each role of each phase does; nothing where shapes alone do not say the steps."""
    if not (workload.is_alone and workload.is_analytical):
        return
    for phase in workload.graph_phases():
        roles: dict[str, list[tuple[Operator, Batch]]] = defaultdict(list)
        for batch in _batches(workload, phase):
            for operator in workload.operators(batch):
                roles[operator.role].append((operator, batch))
        for role, found in roles.items():
            cost = sum((operator.cost for operator, _ in found), start=NO_COST)
            terms = _summed(found, workload.weights.gguf_architecture)
            yield RoleWork(phase=phase, role=role, cost=cost, terms=terms)


def counted_roles(counted: CountedWork, workload: LlamaWorkload) -> Iterator[CountedRole]:
    """Join what was counted of each operator with what it does."""
    works = {(work.phase.value, work.role): work for work in role_works(workload)}
    for row in counted.rows:
        if work := works.get((row.phase, row.role)):
            counts = {metric: getattr(row, metric) for metric in EXPECTED_METRICS}
            yield CountedRole(run=f"{counted.prefix} {counted.settings}", terms=work.terms, counts=counts)


def fitted_ratios(roles: Iterable[CountedRole]) -> tuple[Ratio, ...]:
    """Fit each kind's counts over its sizes, with the error of each run by a fit to the others.

    Roles of two kinds are left out, and so is a kind that fewer than `_LEAST_RUNS` runs have, or whose counts
    its sizes do not say.
    """
    kinds: dict[str, list[CountedRole]] = defaultdict(list)
    for role in roles:
        if len(role.terms) == 1:
            kinds[next(iter(role.terms))].append(role)
    known = {kind: found for kind, found in sorted(kinds.items()) if len({role.run for role in found}) >= _LEAST_RUNS}
    ratios = (_fitted(kind, metric, found) for kind, found in known.items() for metric in EXPECTED_METRICS)
    return tuple(ratio for ratio in ratios if ratio.error_ratio < _MOST_ERROR_RATIO)


def _batches(workload: LlamaWorkload, phase: Phase) -> Sequence[Batch]:
    scenario = workload.scenario
    if phase is not Phase.DECODE:
        return workload.batches(phase)
    before = scenario.n_depth + scenario.n_prompt
    return [workload.step(before + step) for step in range(1, scenario.n_gen + 1)]


def ratios_in(path: Path) -> CountedRatios:
    """Read ratios.

    Raises MeasurementError: it is no such file.
    """
    return read_json(path, CountedRatios, MeasurementError, _TODO, schema=_SCHEMA)


def write_ratios(path: Path, ratios: CountedRatios) -> None:
    """Write ratios, whole or not at all.

    Raises MeasurementError: the file cannot be written.
    """
    write_json(path, {"schema": _SCHEMA, **to_plain(ratios)}, MeasurementError)


def _summed(operators: Iterable[tuple[Operator, Batch]], architecture: str) -> dict[str, tuple[float, ...]]:
    terms: dict[str, tuple[float, ...]] = {}
    for operator, batch in operators:
        shape = shape_of(operator, batch)
        kind, found = " ".join((*family(shape), *_apart(shape, architecture))), _terms(shape)
        terms[kind] = tuple(map(add, terms.get(kind, repeat(0.0)), found))
    return terms


def _apart(shape: OperatorShape, architecture: str) -> tuple[str, ...]:
    if shape.op in PRODUCTS:
        return ("of one row" if shape.n_tokens == 1 else "of rows",)
    if shape.op == "ROPE":
        return ("of", architecture)
    if shape.op == "SET_ROWS" and shape.n_inner == 1:
        return ("of elements",)
    return ("in tiles",) if shape.op == "FLASH_ATTN_EXT" and shape.n_tokens >= _TILE else ()


def _terms(shape: OperatorShape) -> tuple[float, ...]:
    """Return what counts grow with: 1, rows, and the terms of all rows; counts do not see caches."""
    n_rows = shape.n_tokens
    _, *terms = features(shape, n_rows, n_threads=1)
    known = terms[:1] if rule_of(shape.op).features is row_terms else terms
    return (1.0, float(n_rows), *(n_rows * term for term in known))


def _fitted(kind: str, metric: str, roles: Sequence[CountedRole]) -> Ratio:
    terms = np.array([role.terms[kind] for role in roles])
    counts = np.array([role.counts[metric] for role in roles], float)
    runs = np.array([role.run for role in roles])
    errors = [
        np.abs(terms[runs == run] @ _weights(terms[runs != run], counts[runs != run]) / counts[runs == run] - 1.0)
        for run in set(runs)
    ]
    found = np.concatenate(errors)
    usual = found[found <= max(_FAR_RATIO, _FAR_TIMES * np.median(found))]
    weights = tuple(float(f"{weight:.6g}") for weight in _weights(terms, counts))
    return Ratio(
        kind=kind, metric=metric, weights=weights, error_ratio=round(float(usual.max()), 4), n_runs=len(errors)
    )


def _weights(terms: npt.NDArray[Any], counts: npt.NDArray[Any]) -> tuple[float, ...]:
    """Return weights of the least sum of relative errors, so that a role that stands out pulls none along."""
    trust = np.ones(len(counts))
    for _ in range(_N_ROUNDS):
        scaled = terms * (trust / counts)[:, None]
        weights = nonnegative_weights(scaled.tolist(), trust.tolist())
        trust = 1.0 / np.sqrt(np.maximum(np.abs(terms @ weights / counts - 1.0), _LEAST_ERROR))
    return weights
