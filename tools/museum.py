"""The museum: real changes of speed between real builds of llama.cpp, and what the suite finds of them.

    python tools/museum.py build
    python tools/museum.py measure --state=museum.jsonl
    python tools/museum.py table --state=museum.jsonl
    python tools/museum.py bisect --places=4,7,10

The builds are releases of llama-cpp-python, each compared with the one before it, and variants of the newest: of its
settings, of its compiler's, and of its sources, most of them slower and four that change nothing. For each pair of
builds and each model, long pairs say what is true, and then the default comparison what it finds in its budget, which
operator it names, and what the rules of other tools would say of the same processes. What is measured is kept line by
line; a second call goes on from there.

``bisect`` searches the releases for a change that was planted: those from a place on are compiled with a barrier that
waits. Changes of the releases themselves are found beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfsuite.cli.kept_folders import user_cache
from perfsuite.cli.opencl_run import EngineRun, engine_run
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.profile import find_profile
from perfsuite.errors import NativeBuildError
from perfsuite.expectation.cases import phase_cases
from perfsuite.experiments.bisect.build_pairs import BuildPairs
from perfsuite.experiments.certificate.trial_run import peer_alarms
from perfsuite.experiments.compared_plans import ComparedPlans, ComparisonSetup, compare_plans
from perfsuite.experiments.pairs import pair_series, pairs_by_case
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.bundle.engine_build import build_engine
from perfsuite.measure.bundle.llama_source import find_llama
from perfsuite.measure.bundle.named_builds import Builder
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change
from perfsuite.verdict.change_search import ChangeSearch
from perfsuite.verdict.pairs import compare_pairs

RELEASES = (
    *("0.3.9", "0.3.12", "0.3.14", "0.3.16", "0.3.19", "0.3.22"),
    *("0.3.24", "0.3.26", "0.3.28", "0.3.31", "0.3.33", "0.3.36"),
)
MODELS = (
    *("smollm2-135m-l2-q8_0", "smollm2-135m-l2-q4_k_m"),
    *("pythia-70m-l4-q8_0", "pythia-70m-l4-q4_k_m"),
    *("attention-mla-135m-l2-q8_0", "attention-mla-135m-l2-q4_k_m"),
)
PHASES = ("prefill", "decode")
_BUDGET_S = 90.0
#: The interval of what is true holds it in 95 of 100 cases.
_ALPHA = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A replacement in a file of the sources, which must hold the old text."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A build of the newest release that differs in one respect."""

    name: str
    changes_nothing: bool = False
    settings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    without_openmp: bool = False
    edits: tuple[Edit, ...] = ()


_CPU = "ggml/src/ggml-cpu"
_SLOW_FILE = '#pragma GCC optimize("O1")\n'
#: 5,000 bytes before all other code of a file: everything behind it lies elsewhere.
_NEVER_RUN = '__asm__(".text\\n.skip 5000\\n");\n'
VARIANTS = (
    Variant(name="no repacking", settings=("-DGGML_CPU_REPACK=OFF",)),
    Variant(name="no llamafile kernels", settings=("-DGGML_LLAMAFILE=OFF",)),
    Variant(name="no AVX-512", flags=("-mno-avx512f",)),
    Variant(name="no VNNI", flags=("-mno-avx512vnni", "-mno-avxvnni")),
    Variant(name="no OpenMP", without_openmp=True),
    Variant(
        name="-O1 on ops.cpp",
        edits=(Edit(path=f"{_CPU}/ops.cpp", old='#include "ops.h"\n', new=f'{_SLOW_FILE}#include "ops.h"\n'),),
    ),
    Variant(
        name="RoPE's table for each head",
        edits=(Edit(path=f"{_CPU}/ops.cpp", old="if (last_i2 != i2) {", new="if (last_i2 != i2 || true) {"),),
    ),
    Variant(
        name="a barrier that yields",
        edits=(
            Edit(
                path=f"{_CPU}/ggml-cpu.c",
                old="    #pragma omp barrier\n",
                new="    sched_yield();\n    #pragma omp barrier\n",
            ),
            Edit(path=f"{_CPU}/ggml-cpu.c", old="void ggml_barrier(", new="int sched_yield(void);\nvoid ggml_barrier("),
        ),
    ),
    Variant(
        name="attention's products without vectors",
        edits=(
            Edit(
                path=f"{_CPU}/vec.cpp",
                old="    ggml_float sumf = 0.0;\n\n\n#if defined(GGML_SIMD)\n",
                new="    ggml_float sumf = 0.0;\n\n\n#if 0\n",
            ),
        ),
    ),
    Variant(
        name="SwiGLU computed twice",
        edits=(
            Edit(
                path=f"{_CPU}/ops.cpp",
                old="ggml_vec_swiglu_f32(nc, (float *) ((char *) dst->data",
                new="for (int again = 0; again < 2; again++) ggml_vec_swiglu_f32(nc, (float *) ((char *) dst->data",
            ),
        ),
    ),
    Variant(
        name="another order of sections",
        changes_nothing=True,
        flags=("-ffunction-sections",),
        links=("-Wl,--sort-section=name",),
    ),
    Variant(name="debug symbols", changes_nothing=True, flags=("-g",)),
    Variant(
        name="a renamed function",
        changes_nothing=True,
        edits=(Edit(path=f"{_CPU}/ops.cpp", old="flash_attn_ext_f16_one_chunk", new="flash_attn_ext_f16_one_piece"),),
    ),
    Variant(
        name="code that never runs",
        changes_nothing=True,
        edits=(Edit(path=f"{_CPU}/ops.cpp", old='#include "ops.h"\n', new=f'#include "ops.h"\n\n{_NEVER_RUN}'),),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """Two builds."""

    old: str
    new: str

    @property
    def changes_nothing(self) -> bool:
        """Whether nothing may be found."""
        return any(each.name == self.new and each.changes_nothing for each in VARIANTS)


EXHIBITS = (
    *(Exhibit(old=old, new=new) for old, new in pairwise(RELEASES)),
    *(Exhibit(old=RELEASES[-1], new=each.name) for each in VARIANTS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was measured of two builds with one model: by phase, and as a whole."""

    old: str
    new: str
    model: str
    #: New over old with its bounds, of long pairs.
    truth: dict[str, tuple[float, float, float]]
    n_true_pairs: int
    #: The default comparison's outcome and change.
    outcome: dict[str, str]
    change: dict[str, float | None]
    #: The operators that changed most, by share of their phase.
    named: dict[str, list[str]]
    #: By rule of another tool and phase.
    peers: dict[str, dict[str, bool]]
    n_pairs: int
    duration_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the first word says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("build", "measure", "table", "bisect"))
    parser.add_argument("--state", type=Path, default=Path("museum.jsonl"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--scenario", default="siso")
    parser.add_argument("--pairs", type=int, default=60, help="long pairs of each exhibit (default 60)")
    parser.add_argument("--only", default="", help="exhibits whose new build's name holds this text")
    parser.add_argument("--places", default="4,7,10", help="of the releases from which on a change is planted")
    options = parser.parse_args(arguments)
    wanted = [each for each in EXHIBITS if options.only in each.new]
    if options.action == "build":
        for name in dict.fromkeys(name for each in wanted for name in (each.old, each.new)):
            print(f"{name}: build {engine_of(name).build_id}", flush=True)
    elif options.action == "measure":
        measure(options, wanted)
    elif options.action == "bisect":
        for place in options.places.split(","):
            print(searched(options, int(place)), flush=True)
    else:
        print("\n".join(table(kept(options.state))))
    return 0


# ---- builds ----------------------------------------------------------------------------------------------------------


def engine_of(name: str) -> Engine:
    """Return a build of the museum, compiled where it is not yet."""
    builder = Builder(cache_dir=user_cache(), tell=lambda *_: None)
    variant = next((each for each in VARIANTS if each.name == name), None)
    if variant is None:
        return builder.engine(name)
    order = builder.order(str(edited(variant)) if variant.edits else RELEASES[-1])
    tools, flags = order.toolchain, variant.flags
    return build_engine(
        replace(
            order,
            processor=replace(order.processor, settings=(*order.processor.settings, *variant.settings)),
            toolchain=replace(
                tools,
                cc=(*tools.cc, *flags),
                cxx=(*tools.cxx, *flags),
                version=" ".join((tools.version, *flags)),
                links=(*tools.links, *variant.links),
                has_openmp=tools.has_openmp and not variant.without_openmp,
            ),
        ),
        user_cache(),
        lambda *_: None,
    )


def edited(variant: Variant) -> Path:
    """Return a copy of the newest release's sources with the variant's edits."""
    source = find_llama(RELEASES[-1], user_cache(), lambda *_: None).folder
    return edited_copy(source, variant.name.replace(" ", "-").replace("'", ""), variant.edits)


def edited_copy(source: Path, name: str, edits: Sequence[Edit]) -> Path:
    """Return a copy of sources with edits."""
    folder = user_cache() / "museum" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    for edit in edits:
        path = folder / edit.path
        text = path.read_text(encoding="utf-8")
        if edit.old not in text:
            raise NativeBuildError(f"{name}: {edit.path} does not have {edit.old.strip()!r}")
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    return folder


# ---- measuring -------------------------------------------------------------------------------------------------------


def measure(options: argparse.Namespace, exhibits: Sequence[Exhibit]) -> None:
    """Measure what the file does not have yet."""
    there = {(each.old, each.new, each.model) for each in kept(options.state)}
    engines: dict[str, Engine] = {}
    profile = find_profile("host")
    for model in options.models.split(","):
        run_options = argparse.Namespace(
            device="host", model=model, scenario=options.scenario, threads=None, opencl_platform=None, quiet=True
        )
        for exhibit in exhibits:
            if (exhibit.old, exhibit.new, model) in there:
                continue
            for name in (exhibit.old, exhibit.new):
                engines[name] = engines.get(name) or engine_of(name)
            with taken_device(profile, "museum", run_options) as taken:
                run = engine_run(run_options, taken.board)
                plans = (plan_of(run, engines[exhibit.old]), plan_of(run, engines[exhibit.new]))
                found = measured(exhibit, model, run, plans, taken.board, options.pairs)
            with options.state.open("a") as out:
                out.write(json.dumps(asdict(found)) + "\n")
            print(f"{exhibit.new} against {exhibit.old}, {model}: {found.outcome}, truth {found.truth}", flush=True)


def plan_of(run: EngineRun, engine: Engine) -> LlamaPlan:
    """Return the plan of a run with another engine."""
    return replace(run.plan, library_dir=str(engine.library_dir), engine_build_id=engine.build_id)


def measured(
    exhibit: Exhibit, model: str, run: EngineRun, plans: tuple[LlamaPlan, LlamaPlan], board: Board, n_pairs: int
) -> Found:
    """Take long pairs, then compare as by default."""
    profile = find_profile("host")
    setup = ComparisonSetup.of(run.workload, profile, _BUDGET_S)
    phases = {each.case_id.rpartition("/")[2]: each for each in setup.cases if each.kind == "phase"}
    long = pair_series(board, plans)
    sides = pairs_by_case(tuple(phases.values()), long.extend(n_pairs))
    changes = {name: compare_pairs(*sides[phases[name].case_id], alpha=_ALPHA) for name in PHASES}
    compared = compare_plans(setup, plans, board)
    judged = {each.case_id: each for each in compared.judgements}
    return Found(
        old=exhibit.old,
        new=exhibit.new,
        model=model,
        truth={name: (each.estimate_ratio, each.lower_ratio, each.upper_ratio) for name, each in changes.items()},
        n_true_pairs=len(long.valid),
        outcome={name: judged[phases[name].case_id].outcome.value for name in PHASES},
        change={name: judged[phases[name].case_id].change_ratio for name in PHASES},
        named={name: named(compared, name) for name in PHASES},
        peers=peer_alarms(compared.pairs),
        n_pairs=len(compared.pairs),
        duration_s=compared.duration_s,
    )


def named(compared: ComparedPlans, phase: str) -> list[str]:
    """Return the operators of a phase that changed, those with the most time first."""
    changed = [
        each
        for each in compared.judgements
        if each.outcome in (Outcome.REGRESSED, Outcome.IMPROVED) and f"/{phase}/" in each.case_id
    ]
    changed.sort(key=lambda each: -abs(each.lost_ns or 0))
    return [each.case_id.rpartition("/")[2] for each in changed[:3]]


def kept(path: Path) -> list[Found]:
    """Return what was measured so far."""
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [Found(**{**row, "truth": {name: tuple(each) for name, each in row["truth"].items()}}) for row in rows]


# ---- bisecting -------------------------------------------------------------------------------------------------------

#: A busy wait of a few microseconds behind every operator.
_WAIT = "    for (volatile int wait = 0; wait < 4500; wait++) {\n    }\n"


def planted(release: str) -> Engine:
    """Return a build of a release whose barriers wait."""
    builder = Builder(cache_dir=user_cache(), tell=lambda *_: None)
    source = find_llama(release, user_cache(), lambda *_: None).folder
    edit = Edit(path=f"{_CPU}/ggml-cpu.c", old="    #pragma omp barrier\n", new=f"{_WAIT}    #pragma omp barrier\n")
    folder = edited_copy(source, f"planted-{release}", (edit,))
    return builder.engine(str(folder))


def searched(options: argparse.Namespace, place: int) -> str:
    """Search the releases, slower from `place` on, and say what is found."""
    model = options.models.split(",")[0]
    run_options = argparse.Namespace(
        device="host", model=model, scenario=options.scenario, threads=None, opencl_platform=None, quiet=True
    )
    plain = Builder(cache_dir=user_cache(), tell=lambda *_: None)

    def make(name: str) -> Engine:
        return planted(name) if RELEASES.index(name) >= place else plain.engine(name)

    with taken_device(find_profile("host"), "museum", run_options) as taken:
        run = engine_run(run_options, taken.board)
        decode = next(each for each in phase_cases(run.workload) if each.case_id.endswith("/decode"))
        pairs = BuildPairs(
            board=taken.board,
            profile=find_profile("host"),
            plan=run.plan,
            case=decode,
            names=RELEASES,
            make=make,
            remark=lambda text: print(text, file=sys.stderr),
        )
        found = ChangeSearch(n_builds=len(RELEASES), take=pairs.take, is_made=pairs.is_made).run()
    told = (f"{RELEASES[each.after]} {format_change(each.ratio)}" for each in found.points)
    is_found = any(each.after == place and each.ratio > 1.0 for each in found.points)
    return (
        f"planted at {RELEASES[place]}: {'found' if is_found else 'not found'}; {', '.join(told) or 'nothing'}; "
        f"{found.n_pairs} pairs, undecided {list(found.undecided)}"
    )


# ---- the answer ------------------------------------------------------------------------------------------------------


def table(found: Sequence[Found]) -> Iterator[str]:
    """Yield what moved by 2 % and more for sure, a row for each build and phase, and how many changes each rule finds.

    Of several models a row has the range, and the operators that are named most often.
    """
    yield "| build | against | phase | models | long pairs | the default says | operators with most of it |"
    yield "|---|---|---|---|---|---|---|"
    for exhibit in EXHIBITS:
        for phase in PHASES:
            sides = [(each, phase) for each in found if (each.old, each.new) == (exhibit.old, exhibit.new)]
            moved = [side for side in sides if _bounds(side)[0] >= 1.02 or _bounds(side)[1] <= 0.98]
            if moved:
                truths = sorted(_truth(side) for side in moved)
                outcomes = Counter(each.outcome[phase] for each, _ in moved)
                roles = Counter(role for each, _ in moved for role in each.named[phase])
                cells = (
                    *(exhibit.new, exhibit.old, phase, f"{len(moved)} of {len(sides)}"),
                    " to ".join(format_change(truth) for truth in dict.fromkeys((truths[0], truths[-1]))),
                    ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()),
                    ", ".join(role for role, _ in roles.most_common(3)) or "-",
                )
                yield f"| {' | '.join(cells)} |"
    yield ""
    yield from recall(found)


def recall(found: Sequence[Found]) -> Iterator[str]:
    """Yield how many real changes each rule finds, and how often it alarms where nothing changed."""
    sides = [(each, phase) for each in found for phase in PHASES]
    rules = ("perfsuite", *dict.fromkeys(name for each in found for name in each.peers))
    yield "| rule | found of 5 % and more | of 3 to 5 % | false alarms where faster | where nothing changed |"
    yield "|---|---|---|---|---|"
    for rule in rules:
        groups = (
            [side for side in sides if _bounds(side)[0] >= 1.05],
            [side for side in sides if 1.03 <= _truth(side) < 1.05 and _bounds(side)[0] > 1.0],
            [side for side in sides if _bounds(side)[1] <= 1.0],
            [side for side in sides if Exhibit(old=side[0].old, new=side[0].new).changes_nothing],
        )
        counts = (f"{sum(_alarms(rule, side) for side in group)} of {len(group)}" for group in groups)
        yield f"| {rule} | {' | '.join(counts)} |"


def _truth(side: tuple[Found, str]) -> float:
    return side[0].truth[side[1]][0]


def _bounds(side: tuple[Found, str]) -> tuple[float, float]:
    _, lower, upper = side[0].truth[side[1]]
    return lower, upper


def _alarms(rule: str, side: tuple[Found, str]) -> bool:
    each, phase = side
    return each.outcome[phase] == "regressed" if rule == "perfsuite" else each.peers[rule][phase]


if __name__ == "__main__":
    sys.exit(main())
