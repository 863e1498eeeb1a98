"""Counts builds of llama.cpp that do the same work, more work or other work, and prints what the counts say of each.

    python tools/counted_builds.py again --runs=20       the release, again and again: no count may differ
    python tools/counted_builds.py planted               more work, planted one change at a time
    python tools/counted_builds.py museum                the museum's changes of sources and settings
    python tools/counted_builds.py museum 0.3.19 ...     those builds of it; releases are downloaded from PyPI

Each build is compiled as `pytest --device=counted --perf-counts=COPY` does it, with all files but the changed ones from
ccache. What was planted is judged by the counts of the release as it is: an operator that changes and is not expected,
or does not change and is, ends it with exit code 1. A build of the museum is judged by what it is compared with.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from museum import EXHIBITS, RELEASES, VARIANTS, Edit, edited_copy

from perfsuite.cli.kept_folders import user_cache
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.counted.counting_run import count_workload, own_processor
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.records.counts import CountedWork, counts_path, read_counts
from perfsuite.verdict.counted import CountChange, count_changes
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_MODEL, _SCENARIO = "smollm2-135m-l4-q8_0", "p16-g4"
_CPU = "ggml/src/ggml-cpu"
_PRODUCTS = r"Qcur|Kcur|Vcur|attn_out|ffn_(gate|up|out)|result_output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """More work."""

    name: str
    edits: tuple[Edit, ...]
    #: Of the operators whose counts must change; no other's may.
    roles: str = "(?!)"


PLANTS = (
    Plant(
        name="one more pass over each row of RMS norm",
        edits=(
            Edit(
                path=f"{_CPU}/ops.cpp",
                old="const float scale = 1.0f/sqrtf(mean + eps);\n\n                // if you hit this",
                new="""for (int64_t i00 = 0; i00 < ne00; i00++) {
                    __asm__ volatile("" :: "x"(x[i00]));
                }
                const float scale = 1.0f/sqrtf(mean + eps);

                // if you hit this""",
            ),
        ),
        roles=r".*_norm",
    ),
    Plant(
        name="RoPE's table for each head",
        edits=(Edit(path=f"{_CPU}/ops.cpp", old="if (last_i2 != i2) {", new="if (last_i2 != i2 || i1 > 0) {"),),
        roles=r".*_rope",
    ),
    Plant(
        name="0.5 % more instructions in a product of Q8_0",
        edits=(
            Edit(  # of several tokens: behind the tiles, whose own code stays as it is
                path=f"{_CPU}/llamafile/sgemm.cpp",
                old="return true;\n#elif defined(__ARM_FEATURE_DOTPROD)\n        tinyBLAS_Q0_ARM<block_q8_0> tb{",
                new="""for (int64_t more = m * n * k / 48; more > 0; more--) {
            __asm__ volatile("nop");
        }
        return true;
#elif defined(__ARM_FEATURE_DOTPROD)
        tinyBLAS_Q0_ARM<block_q8_0> tb{""",
            ),
            Edit(  # of one: two to a row
                path=f"{_CPU}/arch/x86/quants.c",
                old="    const block_q8_0 * GGML_RESTRICT x = vx;\n    const block_q8_0 * GGML_RESTRICT y = vy;\n",
                new="""    const block_q8_0 * GGML_RESTRICT x = vx;
    const block_q8_0 * GGML_RESTRICT y = vy;
    __asm__ volatile("nop; nop");
""",
            ),
        ),
        roles=_PRODUCTS,
    ),
    Plant(
        name="one more allocation for each token",
        edits=(
            Edit(
                path="src/llama-context.cpp",
                old="    const int ret = ctx->decode(batch);\n",
                new="""    for (int32_t token = 0; token < batch.n_tokens; token++) {
        char * more = new char[64];
        __asm__ volatile("" :: "r"(more) : "memory");
        delete[] more;
    }
    const int ret = ctx->decode(batch);
""",
            ),
        ),
    ),
)

#: How the museum's settings are made in one file of the sources.
_SETTINGS = {
    "no repacking": Edit(path=f"{_CPU}/ggml-cpu.cpp", old="#ifdef GGML_USE_CPU_REPACK", new="#if 0"),
    "no llamafile kernels": Edit(path=f"{_CPU}/ggml-cpu.c", old="#if GGML_USE_LLAMAFILE", new="#if 0"),
}

#: A word of GCC's, and OpenMP's barriers: the build that is counted has neither.
_NOT_COUNTED = ("-O1 on ops.cpp", "a barrier that yields")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the first word says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("again", "planted", "museum"))
    parser.add_argument("builds", nargs="*", help="what is planted, or builds of the museum (default all)")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(arguments)
    if options.action == "museum":
        return museum(options.builds)
    return planted(options.builds) if options.action == "planted" else again(options.runs)


def count(name: str, edits: tuple[Edit, ...] = ()) -> CountedWork:
    """Count a release, or a copy of it with edits."""
    print(f"{name} {' '.join(each.path for each in edits)}", file=sys.stderr)
    workload = llama_workload(resolve(_MODEL, cache_dir=user_cache() / "models"), find_scenario(_SCENARIO))
    if not edits:
        return count_workload(workload, name, own_processor(), user_cache(), lambda *_: None)
    known_by = hashlib.sha256(repr(edits).encode()).hexdigest()[:8]
    copy = edited_copy(find_llama(name, user_cache(), lambda *_: None).folder, f"counted-{known_by}", edits)
    try:
        return count_workload(workload, str(copy), own_processor(), user_cache(), lambda *_: None)
    finally:
        shutil.rmtree(copy)


#: Each build is counted once.
counted = cache(count)


# ---- again -----------------------------------------------------------------------------------------------------------


def again(n_runs: int) -> int:
    """Count the release several times, and say how many counts differ from those that are committed."""
    before = read_counts(counts_path(Path(__file__).parents[1] / "baselines", own_processor(), f"{_MODEL}/{_SCENARIO}"))
    n_different = 0
    for run in range(n_runs):
        changes = changed(before, count(RELEASES[-1]))
        n_different += bool(changes)
        told = "; ".join(f"{each.case_id} {each.before} {each.now}" for each in changes) or "none differs"
        print(f"run {run + 1}: of {len(before.counts)} counts {told}", flush=True)
    return 1 if n_different else 0


# ---- planted ---------------------------------------------------------------------------------------------------------


def planted(names: Sequence[str]) -> int:
    """Count plants, all or those named, and print a row of each."""
    plain = counted(RELEASES[-1])
    print(
        "| planted | operators | their instructions | whole phases | not as expected |\n|---|---|---|---|---|",
        flush=True,
    )
    is_right = True
    for plant in (each for each in PLANTS if not names or each.name in names):
        changes = changed(plain, counted(RELEASES[-1], plant.edits))
        wrong = unexpected(plant, plain, changes)
        is_right = is_right and not wrong
        print(f"| {plant.name} | {' | '.join(row(changes))} | {', '.join(wrong) or 'nothing'} |", flush=True)
    return 0 if is_right else 1


def changed(before: CountedWork, now: CountedWork) -> list[CountChange]:
    """Return the counts that are not the same, by one even."""
    return [each for each in count_changes(before, now).values() if each.now != each.before]


def parts(change: CountChange) -> tuple[str, str, str]:
    """Return the phase, the role (empty for the whole phase) and the metric of a count."""
    phase, *role, metric = change.case_id.split("/")[3:]
    return phase, "".join(role), metric


def unexpected(plant: Plant, plain: CountedWork, changes: Sequence[CountChange]) -> list[str]:
    """Return the operators that changed and must not, and those that must and did not."""
    found = {f"{phase}/{role}" for phase, role, _ in map(parts, changes) if role}
    expected = {each.name for each in plain.rows if each.role and re.fullmatch(plant.roles, each.role)}
    return [*(f"{name} changed" for name in found - expected), *(f"{name} did not" for name in expected - found)]


def row(changes: Sequence[CountChange]) -> Iterator[str]:
    """Yield the operators with a changed count, the range of their instructions, and what whole phases changed by."""
    operators = [each for each in changes if parts(each)[1]]
    roles = dict.fromkeys(parts(each)[1] for each in operators)
    yield f"{len({parts(each)[:2] for each in operators})}: {', '.join(roles)}" if roles else "none"
    ratios = sorted(each.ratio or 0.0 for each in operators if parts(each)[2] == "instructions")
    yield f"{ratios[0]:+.2%} to {ratios[-1]:+.2%}" if ratios else "-"
    whole = (each for each in changes if not parts(each)[1] and parts(each)[2] in ("instructions", "allocations"))
    yield "; ".join(f"{parts(each)[0]} {each.before:,} to {each.now:,} {each.metric}" for each in whole) or "none"


# ---- the museum ------------------------------------------------------------------------------------------------------


def museum(names: Sequence[str]) -> int:
    """Count builds of the museum and those that they are compared with, and print a row of each."""
    able: dict[str, tuple[Edit, ...]] = {each.name: each.edits for each in VARIANTS if each.edits}
    able |= {name: (edit,) for name, edit in _SETTINGS.items()}
    able = {name: edits for name, edits in able.items() if name not in _NOT_COUNTED}
    print("| build | against | phase | instructions | operators with most of it |", "|---|---|---|---|---|", sep="\n")
    for exhibit in EXHIBITS:
        if exhibit.new not in (names or able):
            continue
        now = counted(RELEASES[-1], able[exhibit.new]) if exhibit.new in able else counted(exhibit.new)
        changes = changed(counted(exhibit.old), now)
        for phase in ("prefill", "decode"):
            of_phase = [each for each in changes if parts(each)[0] == phase and parts(each)[2] == "instructions"]
            whole = [each for each in of_phase if not parts(each)[1]]
            operators = sorted((each for each in of_phase if parts(each)[1]), key=difference, reverse=True)
            told = (f"{parts(each)[1]} {share(each)}" for each in operators[:3])
            is_same = "the same" if not whole else share(whole[0])
            print(f"| {exhibit.new} | {exhibit.old} | {phase} | {is_same} | {', '.join(told) or '-'} |", flush=True)
    return 0


def difference(change: CountChange) -> int:
    """Return by how much a count differs."""
    return abs((change.now or 0) - (change.before or 0))


def share(change: CountChange) -> str:
    """Return how a count changed."""
    return "is new" if change.before is None else "is gone" if change.ratio is None else f"{change.ratio:+.2%}"


if __name__ == "__main__":
    sys.exit(main())
