"""What the suite can do with each architecture of the installed llama.cpp: the table of docs/results.md.

    python tools/architectures.py > architectures.md
    python tools/architectures.py gemma3 mamba smollm2-135m-q8_0

The smallest model of each architecture is written, its graphs are asked for, and a prompt of 16 tokens and 4 more are
run. Each row says how many phases and operators were recorded, whether the graphs are those that were said before
anything ran, how many operators have a cost, by which they are forecast, and how long it took to read the graphs anew,
the start of the process and what the suite makes of them included. A name of the catalogue with a quantisation is run
in its full size. The exit code is 1 where an architecture has no phases or operators.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.op_rules import OPERATORS
from perfsuite.experiments.engine_replicates import recorded_graph
from perfsuite.experiments.said_graphs import engine_graphs
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import replicate_samples
from perfsuite.verdict.graph_agreement import graph_differences
from perfsuite.workload.catalog import tiny_names
from perfsuite.workload.quantization import quantizations
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_SCENARIO = "p16-g4"
_QUANTIZATION = "q8_0"
#: The functions of libllama that list its architectures, and the C++ vector that the first returns.
_ALL, _NAME = "_Z12llm_arch_allv", "_Z13llm_arch_name8llm_arch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came out of one architecture."""

    name: str
    n_phases: int = 0
    n_operators: int = 0
    n_forecast: int = 0
    n_differences: int = 0
    read_s: float = 0.0
    why: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether it has phases and operators."""
        return bool(self.n_phases and self.n_operators)

    def __str__(self) -> str:
        """As a row of the table."""
        agrees = "-" if not self.is_whole else "yes" if not self.n_differences else f"{self.n_differences} differ"
        counts = f"{self.n_phases} | {self.n_operators} | {agrees} | {self.n_forecast} | {self.read_s:.2f}"
        return f"| {self.name} | {counts} | {self.why} |"


def main() -> int:
    """Print the table, a row as soon as it is known, and what it comes to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="architectures or models; without any all of the engine's")
    options = parser.parse_args()
    engine, board = find_engine(), LocalBoard(cache_dir=user_cache())
    shutil.rmtree(board.cache_dir / "graphs", ignore_errors=True)
    heads = ("architecture", "phases", "operators", "said as recorded", "with a forecast", "read in, s", "why not")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    rows = []
    for name in options.names or sorted(known_architectures(engine)):
        rows.append(row(name, engine, board))
        print(rows[-1], flush=True)
    whole = [each for each in rows if each.is_whole]
    n_said = sum(not each.n_differences for each in whole)
    n_forecast = sum(each.n_forecast == each.n_operators for each in whole)
    print(
        f"\n{len(rows)} architectures: {len(whole)} with phases and operators, {n_said} said as recorded, "
        f"{n_forecast} with a forecast of every operator"
    )
    return int(len(whole) < len(rows))


def known_architectures(engine: Engine) -> Iterator[str]:
    """List the architectures that an engine knows, by its own functions."""
    library = ctypes.CDLL(str(engine.library("libllama")), mode=ctypes.RTLD_GLOBAL)
    vector = (ctypes.POINTER(ctypes.c_int32) * 3)()
    list_all, name_of = getattr(library, _ALL), getattr(library, _NAME)
    list_all.restype, name_of.restype = None, ctypes.c_char_p
    list_all(ctypes.byref(vector))
    begin, end = (ctypes.cast(vector[at], ctypes.c_void_p).value or 0 for at in (0, 1))
    for place in range((end - begin) // ctypes.sizeof(ctypes.c_int32)):
        if (name := name_of(vector[0][place]).decode()) != "(unknown)":
            yield name


def row(name: str, engine: Engine, board: LocalBoard) -> Row:
    """Run the smallest model of an architecture, or a model by its name."""
    models_dir, model = board.cache_dir / "models", f"tiny-{name}-{_QUANTIZATION}"
    if f"tiny-{name}" not in tiny_names():
        if not name.endswith(quantizations()):
            return Row(name=name, why="llama.cpp makes no model of it from metadata alone")
        model = name
    try:
        weights = resolve(model, cache_dir=models_dir)
        workload, path = llama_workload(weights, find_scenario(_SCENARIO)), board.place_weights(weights)
        began_s = time.monotonic()
        said = engine_graphs(workload, engine, board, models_dir=models_dir)
        read_s = time.monotonic() - began_s
        workload = replace(workload, engine_graphs=said)
        plan = llama_plan(workload, engine, gguf_path=path, cache_dir=board.cache_dir, n_threads=2)
        record = EngineRecord.from_plain(board.run(plan)["engine"])
    except PerfsuiteError as error:
        return Row(name=name, why=_shown(str(error)))
    return replace(_counted(name, workload, record), read_s=read_s)


def _counted(name: str, workload: LlamaWorkload, record: EngineRecord) -> Row:
    samples = replicate_samples(record)
    recorded = {(phase, role) for phase, roles in samples.operator_ns.items() for role in roles}
    cases = [case for case in operator_cases(workload) if (case.phase, case.role) in recorded]
    unclaimed = recorded - {(case.phase, case.role) for case in cases}
    differing = {(phase, role) for phase in workload.graph_phases() for role in _differing(workload, record, phase)}
    return Row(
        name=name,
        n_phases=len({case.phase for case in phase_cases(workload)} & set(samples.phase_ns)),
        n_operators=len(recorded),
        n_forecast=sum(bool(case.costs) and (case.phase, case.role) not in differing for case in cases),
        n_differences=len(differing | unclaimed),
        why=", ".join(sorted(_unknown(workload))),
    )


def _differing(workload: LlamaWorkload, record: EngineRecord, phase: Phase) -> set[str]:
    return {each.role for each in graph_differences(workload.graph(phase), recorded_graph(record, phase, workload))}


def _unknown(workload: LlamaWorkload) -> set[str]:
    """Name the operators that have no row in the table."""
    graphs = (workload.graph(phase) for phase in workload.graph_phases())
    return {f"no cost of {each.op}" for graph in graphs for each in graph if each.op not in OPERATORS}


def _shown(reason: str) -> str:
    """Return a reason without the paths of this machine."""
    words = (Path(word).name if word.startswith("/") else word for word in reason.split())
    return " ".join(words).replace("|", "/")[-160:]


if __name__ == "__main__":
    sys.exit(main())
