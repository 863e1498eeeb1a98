"""Plants more work in copies of llama.cpp, one change at a time, and prints which counts change by how much.

    python tools/planted_counts.py

Each copy is compiled as `perfsuite counts --llama COPY` does it, with all files but the changed one from ccache, and
judged by the counts of the release as it is. An operator that changes and is not expected, or does not change and is,
ends it with exit code 1.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.cli.kept_folders import user_cache
from perfsuite.errors import NativeBuildError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.counted.counting_run import count_workload
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.records.counts import CountedWork
from perfsuite.verdict.counted import CountChange, count_changes
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

_CPU = "ggml/src/ggml-cpu"
_MODEL, _SCENARIO = "smollm2-135m-l4-q8_0", "p16-g4"
#: Products of a Q8_0 matrix.
_PRODUCTS = r"Qcur|Kcur|Vcur|attn_out|ffn_(gate|up|out)|result_output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """More work: a replacement of a text in a file."""

    name: str
    path: str
    old: str
    new: str
    #: Of the operators whose counts must change; no other's may.
    roles: str = "(?!)"


PLANTS = (
    Plant(
        name="a pass more over each row of RMS norm",
        path=f"{_CPU}/ops.cpp",
        old="                const float mean  = sum/ne00;\n                const float scale = 1.0f/sqrtf(mean + eps);\n",
        new="""                for (int64_t i00 = 0; i00 < ne00; i00++) {
                    __asm__ volatile("" :: "x"(x[i00]));
                }
                const float mean  = sum/ne00;
                const float scale = 1.0f/sqrtf(mean + eps);
""",
        roles=r".*_norm",
    ),
    Plant(
        name="RoPE's table for each head",
        path=f"{_CPU}/ops.cpp",
        old="if (last_i2 != i2) {",
        new="if (last_i2 != i2 || i1 > 0) {",
        roles=r".*_rope",
    ),
    Plant(
        name="half a percent more instructions in a Q8_0 product",
        path=f"{_CPU}/llamafile/sgemm.cpp",
        old="        }\n    }\n\n    // Templated functions for gemm of dimensions Mx4\n",
        new="""            for (int64_t more = k / 8; more > 0; more--) {
                __asm__ volatile("nop");
            }
        }
    }

    // Templated functions for gemm of dimensions Mx4
""",
        roles=_PRODUCTS,
    ),
    Plant(
        name="one allocation more for each token",
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
)


def main() -> int:
    """Count the release, then each copy with a plant, and print what differs."""
    workload = llama_workload(resolve(_MODEL, cache_dir=user_cache() / "models"), find_scenario(_SCENARIO))

    def counted(llama: str | None) -> CountedWork:
        return count_workload(workload, llama, user_cache(), lambda what, *_: print(what, file=sys.stderr))

    plain = counted(None)
    print("| planted | operators | their instructions | whole phases | not expected |\n|---|---|---|---|---|", flush=True)
    is_right = True
    for plant in PLANTS:
        changes = [each for each in count_changes(plain, counted(str(planted(plant)))).values() if each.now != each.before]
        wrong = unexpected(plant, plain, changes)
        is_right = is_right and not wrong
        print(f"| {plant.name} | {' | '.join(row(changes))} | {', '.join(wrong) or 'nothing'} |", flush=True)
    return 0 if is_right else 1


def planted(plant: Plant) -> Path:
    """Return a copy of the release's sources with a plant."""
    source = find_llama(None, user_cache(), lambda *_: None).folder
    folder = user_cache() / "planted" / "llama.cpp"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    path = folder / plant.path
    text = path.read_text(encoding="utf-8")
    if text.count(plant.old) != 1:
        raise NativeBuildError(f"{path}: has {text.count(plant.old)} times {plant.old.strip()!r}, expected one")
    path.write_text(text.replace(plant.old, plant.new), encoding="utf-8")
    return folder


def parts(change: CountChange) -> tuple[str, str, str]:
    """Return the phase, the role (empty for the whole phase) and the metric of a count."""
    phase, *role, metric = change.case_id.split("/")[3:]
    return phase, "".join(role), metric


def unexpected(plant: Plant, plain: CountedWork, changes: Sequence[CountChange]) -> list[str]:
    """Return the operators that changed and must not, and those that must and did not."""
    changed = {f"{phase}/{role}" for phase, role, _ in map(parts, changes) if role}
    expected = {row.name for row in plain.rows if row.role and re.fullmatch(plant.roles, row.role)}
    return [*(f"{name} changed" for name in changed - expected), *(f"{name} did not" for name in expected - changed)]


def row(changes: Sequence[CountChange]) -> Iterator[str]:
    """Yield the operators with a changed count, the range of their instructions, and each phase's own changes."""
    instructions = {parts(each)[:2]: each for each in changes if parts(each)[2] == "instructions"}
    roles = dict.fromkeys(parts(each)[1] for each in changes if parts(each)[1])
    yield f"{len({parts(each)[:2] for each in changes if parts(each)[1]})}: {', '.join(roles)}" if roles else "none"
    ratios = sorted(each.ratio or 0.0 for (_, role), each in instructions.items() if role)
    yield f"{ratios[0]:+.2%} to {ratios[-1]:+.2%}" if ratios else "-"
    whole = [each for each in changes if not parts(each)[1] and parts(each)[2] in ("instructions", "allocations")]
    yield "; ".join(f"{parts(each)[0]} {each.before:,} to {each.now:,} {each.metric}" for each in whole) or "none"


if __name__ == "__main__":
    sys.exit(main())
