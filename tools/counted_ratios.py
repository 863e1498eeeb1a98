#!/usr/bin/env python
"""Count models of several sizes and types, and fit what operators are expected to count (takes about half an hour).

python tools/counted_ratios.py FOLDER   count what FOLDER lacks, keep it there, and write the ratios anew

What it prints are the ratios with their errors, and what stands out from them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.expectation import counted_ratios as ratios
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.experiments.counted.counting_run import count_workload, own_processor
from perfsuite.experiments.counted.experiment import expected_counts
from perfsuite.records.counts import CountedWork, counts_path, read_counts, write_counts
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

#: Models and their scenarios: with flash attention, and without.
_FLASH = {
    "attention-mla-135m-l2-q8_0": "p16-g2",
    "llama-3.2-1b-l1-q4_k": "p16-g2",
    "pythia-160m-l2-f16": "p24-g2",
    "pythia-160m-l2-f32": "p8-g2",
    "pythia-160m-l2-q4_k": "p8-g2",
    "pythia-160m-l2-q8_0": "p16-g2",
    "qwen2.5-0.5b-l2-q8_0": "p12-g2",
    "qwen3-0.6b-l1-q4_k_m": "p16-g2",
    "qwen3-0.6b-l2-q4_0": "p32-g2",
    "qwen3-0.6b-l2-q4_k": "p32-g2",
    "qwen3-0.6b-l2-q8_0": "p48-g2",
    "smollm2-135m-l2-f16": "p16-g2",
    "smollm2-135m-l2-f32": "p16-g2",
    "smollm2-135m-l2-q4_0": "p16-g2",
    "smollm2-135m-l2-q8_0": "p1-g8 p4-g2 p5-g2 p33-g2 p64-g2",
    "smollm2-135m-l4-q8_0": "p16-g4",
    "smollm2-360m-l2-f16": "p32-g2",
    "smollm2-360m-l2-f32": "p32-g2",
    "smollm2-360m-l2-q4_0": "p7-g2",
    "smollm2-360m-l2-q8_0": "p32-g2",
}
_SPLIT = {
    "pythia-160m-l2-q8_0": "p40-g2",
    "smollm2-135m-l2-q8_0": "p24-g2",
    "smollm2-360m-l2-q8_0": "p16-g2",
}


def main(arguments: list[str]) -> int:
    """Count, fit, and write."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    found = [(_counted(Path(arguments[0]), workload), workload) for workload in _workloads()]
    first = found[0][0]
    roles = [role for counted, workload in found for role in ratios.counted_roles(counted, workload)]
    fitted = ratios.CountedRatios(
        llama=first.llama, compiler=first.compiler, processor=first.processor, ratios=ratios.fitted_ratios(roles)
    )
    ratios.write_ratios(ratios.PATH, fitted)
    for ratio in fitted.ratios:
        print(f"{ratio.kind:36} {ratio.metric:14} {ratio.n_runs:3} runs, error {ratio.error_ratio:.2%}")
    for counted, workload in found:
        for each in expected_counts(counted, workload, fitted).values():
            if each.is_finding:
                print(f"{each.case_id}: {each.told}")
    return 0


def _workloads() -> Iterator[LlamaWorkload]:
    for has_flash, runs in ((True, _FLASH), (False, _SPLIT)):
        for name, scenarios in runs.items():
            weights = resolve(name, cache_dir=user_cache() / "models")
            for scenario in scenarios.split():
                yield llama_workload(weights, find_scenario(scenario), flash_attn=has_flash)


def _counted(folder: Path, workload: LlamaWorkload) -> CountedWork:
    path = counts_path(folder, own_processor(), workload.prefix)
    if not path.exists():
        write_counts(path, count_workload(workload, None, own_processor(), user_cache(), print))
    return read_counts(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
