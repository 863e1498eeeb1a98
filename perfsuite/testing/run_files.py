"""Makes up whole runs, for tests of what reads and shows them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Any

from perfsuite import __version__
from perfsuite.records.ceilings import Bandwidth, Ceilings
from perfsuite.records.outcome import Attribution, Carrier, Judgement, Outcome, PhaseAttribution
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import Commit, RunOrigin
from perfsuite.testing.run_cases import (
    ARCHITECTURE,
    CHOSEN_CASES,
    WORKLOAD,
    PlannedCase,
    planned_cases,
    planned_outcome,
    synthetic_judgement,
)
from perfsuite.testing.run_observations import synthetic_observation

__all__ = ["CHOSEN_CASES", "HOSTILE_NAMES", "synthetic_observation", "synthetic_run"]

#: Each of another danger, and no two alike: of HTML, templates, directions, joined pictures, markup, space, formulas.
HOSTILE_NAMES: tuple[str, ...] = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><svg/onload=alert(1)>",
    "<!-- ]]> -->",
    "' onmouseover='alert(1)",
    '" autofocus onfocus="alert(1)',
    "`backticks` and ``two``",
    "a & b &amp; c &#x3c;",
    "javascript:alert(1)",
    *("{{7*7}}", "{% raw %}", "${7*7}", "#{7*7}", "datum['x'] + 1"),
    "מבחן ביצועים 17",
    "اختبار الأداء",
    *("before\u202eafter", "\u2067isolated\u2069 and \u202bembedded"),
    *("👩\u200d💻 coder", "🏳️\u200d🌈🧪", "e\u0301 and é", "zero\u200bwidth"),
    *("| a | b |", "[link](https://example.invalid) ![image](x)", "**bold** _it_ ~~no~~ # head", "[bold red]rich[/]"),
    *("back\\slash\\n", "100 % {le=\"1\",x='2'} %s %(a)s", "::error file=a,line=1::b"),
    *("two\nlines", "a\ttab", " leading and trailing ", "\x1b[31mred\x07"),
    *("=1+1", "+1", "-1", "@x", 'a,b;"c"'),
    "long-" * 60,
)


def synthetic_run(
    *,
    n_cases: int = 500,
    seed: int = 0,
    started_at: str = "2026-03-01T02:00:00.000+00:00",
    change_ratio: float = 1.0,
    n_regressed: int = 5,
    names: Sequence[str] = (),
    against: str | None = "settings ubatch=512",
) -> RunFile:
    """Make up a run: the same cases in each, in which about 60 and more have every outcome.

    The first cases are the phases, then those with the given `names` of a third party, then the operators; names are
    wherever else a run holds words of somebody's choice, too. Two runs of one `seed` and time are equal. The times of
    `CHOSEN_CASES` and of their baselines are multiplied by `change_ratio`: a change between two runs that neither of
    them shows. `n_regressed` cases are slower than their baselines: the first of `CHOSEN_CASES`, then operators.
    `against` is what the engine was compared with in pairs; None leaves it with its stored baseline.
    """
    cases = planned_cases(n_cases, names)
    outcomes = zip(cases, _outcomes(cases, n_regressed), strict=True)
    shared: Any = {"seed": seed, "change_ratio": change_ratio, "has_pairs": against is not None}
    judgements = tuple(synthetic_judgement(case, outcome, **shared) for case, outcome in outcomes)
    return RunFile(
        suite_version=__version__,
        started_at=started_at,
        device=_pick(names, 0, "host"),
        workload=_pick(names, 1, WORKLOAD),
        subjects={"llama": _pick(names, 2, "llama 0.5.0, ggml 0.25.3"), "kernels": "AMD EPYC (Intel(R) OpenCL)"},
        fingerprints=_fingerprints(names),
        ceilings=_CEILINGS,
        durations_s={"ceilings": 5.2, "llama": 41.6, "kernels": 21.8, "trace": 0.8},
        operator_share_ratio={"prefill": 0.9932, "decode": 0.9825},
        n_discarded_replicates={"llama": 1, "kernels": 0},
        peak_rss_bytes=548_466_688,
        judgements=judgements,
        sentinels_ns=_sentinels(seed),
        covariates=_COVARIATES,
        against=against and _pick(names, 3, against),
        engines={"llama": "0a1b2c3d4e5f6071"},
        attribution=_attribution(judgements, names),
        origin=_origin(f"{seed}/{started_at}", against, names),
    )


def _outcomes(cases: Sequence[PlannedCase], n_regressed: int) -> Iterator[Outcome]:
    known = {case.case_id for case in cases}
    operators = (case.case_id for case in cases if case.kind == "operator")
    regressed = list(dict.fromkeys([*(each for each in CHOSEN_CASES if each in known), *operators]))[:n_regressed]
    place = 0
    for case in cases:
        if case.case_id in CHOSEN_CASES:
            yield Outcome.REGRESSED if case.case_id in regressed else Outcome.PASS
        else:
            yield Outcome.REGRESSED if case.case_id in regressed else planned_outcome(place)
            place += 1


def _attribution(judgements: Sequence[Judgement], names: Sequence[str]) -> Attribution:
    """Blame the operators that regressed for what their phase lost."""
    regressed = [each for each in judgements if each.outcome is Outcome.REGRESSED]
    phases: list[PhaseAttribution] = []
    for phase in (each for each in regressed if each.kind == "phase"):
        beginning, lost_ns = f"{phase.case_id.replace('phase/', 'operator/', 1)}/", phase.lost_ns or 1
        operators = [each for each in regressed if each.case_id.startswith(beginning)]
        carriers = tuple(
            Carrier(
                case_id=each.case_id,
                role=_pick(names[10 * len(phases) :], 4, each.case_id.rpartition("/")[2]),
                lost_ns=each.lost_ns or 0,
                share_ratio=(each.lost_ns or 0) / lost_ns,
                is_significant=True,
            )
            for each in sorted(operators, key=lambda each: -(each.lost_ns or 0))[:5]
        )
        rest_ns = lost_ns - sum(each.lost_ns for each in carriers)
        if carriers:
            phases.append(
                PhaseAttribution(case_id=phase.case_id, lost_ns=lost_ns, carriers=carriers, unexplained_ns=rest_ns)
            )
    return Attribution(phases=tuple(phases))


def _origin(identity: str, against: str | None, names: Sequence[str]) -> RunOrigin:
    digest = hashlib.sha256(identity.encode()).hexdigest()
    compared = (f"--against={against}",) if against else ()
    return RunOrigin(
        run_id=digest[:16],
        arguments=("--device=host", f"--model={ARCHITECTURE}", *compared, *names[:3]),
        environment={"LLAMA_CPP_LIB_PATH": _pick(names, 5, "/opt/llama/lib")},
        commit=Commit(sha=digest[:40], is_dirty=False, branch=_pick(names, 6, "main")),
    )


def _fingerprints(names: Sequence[str]) -> dict[str, dict[str, str]]:
    machine = {"soc": "AMD EPYC, cpu family 26, model 2", "n_cores": "2", "memory_gib": "32", "machine": "x86_64"}
    engine = {"engine": "llama 0.5.0, ggml 0.25.3", "model": _pick(names, 7, "synthetic:63c426630df83d22")}
    device = {"opencl_platform": "Intel(R) OpenCL", "opencl_device": _pick(names, 8, "AMD EPYC")}
    return {"llama": {**machine, **engine, "threads": "2", "backend": "cpu"}, "kernels": {**machine, **device}}


def _sentinels(seed: int) -> dict[str, dict[str, tuple[int, ...]]]:
    chance = random.Random(f"{seed}/sentinels")
    usual_ns = {"memory": 880_000, "compute": 187_000}
    return {
        group: {
            name: tuple(round(chance.gauss(time, time * 0.01)) for _ in range(10)) for name, time in usual_ns.items()
        }
        for group in ("llama", "kernels")
    }


def _pick(names: Sequence[str], place: int, usual: str) -> str:
    """Return one of the names, in rotation; what is usual where there are none."""
    return names[place % len(names)] if names else usual


def _bandwidth(working_set_bytes: int, read_bytes_per_s: float) -> Bandwidth:
    return Bandwidth(
        working_set_bytes=working_set_bytes,
        read_bytes_per_s=read_bytes_per_s,
        copy_bytes_per_s=read_bytes_per_s * 0.97,
        triad_bytes_per_s=read_bytes_per_s * 1.02,
    )


_CEILINGS = Ceilings(
    n_threads=2,
    bandwidths=(_bandwidth(1 << 20, 5.1e11), _bandwidth(16 << 20, 2.4e11), _bandwidth(128 << 20, 5.8e10)),
    fp32_flops_per_s=5.32e11,
    int8_flops_per_s=2.14e12,
    f16_flops_per_s=None,
    dispatch_ns=123,
)

_COVARIATES: dict[str, dict[str, float | None]] = {
    group: {
        "load_average": 0.04,
        "cpu_mhz": 2596.1,
        "temperature_celsius": None,
        "waiting_ratio": 0.0023,
        "steal_ratio": 0.0,
    }
    for group in ("llama", "kernels")
}
