"""Where the latencies of a study come from: its plan, stored runs, an earlier study, or measuring now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.plan import StudyPlan, StudyRun
from perfsuite.experiments.study.token_latency import TokenLatency
from perfsuite.records.events import Phase
from perfsuite.report.measured_phases import read_measured_phases
from perfsuite.units import NS_PER_S


def known_latencies(plan: StudyPlan, earlier: Path | None) -> dict[str, TokenLatency]:
    """Return what need not be measured, by name of the run; an earlier study counts for runs without their own.

    Raises `PerfsuiteError`: a file cannot be read, or has no latency of prefill and decode.
    """
    known = {} if earlier is None else _of_study(earlier)
    own = {run.name: _of_run(run) for run in plan.runs if not run.is_measured}
    return {**{run.name: known[run.name] for run in plan.runs if run.name in known}, **own}


def _of_run(run: StudyRun) -> TokenLatency:
    if run.latency is not None:
        return TokenLatency(
            prefill_samples_s=(run.latency.prefill_s_per_token,),
            decode_samples_s=(run.latency.decode_s_per_token,),
            source="given",
        )
    assert run.run_file is not None
    return _of_run_file(run.run_file)


def _of_run_file(path: Path) -> TokenLatency:
    """Take prefill with the gather of its embeddings, as a study measures it."""
    found = read_measured_phases(path)
    prefill_ns, decode_ns = (found.samples_ns.get(phase, ()) for phase in (Phase.PREFILL, Phase.DECODE))
    if not prefill_ns or not decode_ns or not found.scenario.n_prompt:
        raise PerfsuiteError(f"{path}: has no valid prefill and decode; run both phases again")
    embedding_ns = found.samples_ns.get(Phase.EMBEDDING) or (0,) * len(prefill_ns)
    n_prompt = found.scenario.n_prompt
    return TokenLatency(
        prefill_samples_s=tuple(
            (prefill + embedding) / n_prompt / NS_PER_S
            for prefill, embedding in zip(prefill_ns, embedding_ns, strict=False)
        ),
        decode_samples_s=tuple(each / NS_PER_S for each in decode_ns),
        source=str(path),
    )


def _of_study(path: Path) -> Mapping[str, TokenLatency]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: TokenLatency(
                prefill_samples_s=tuple(map(float, each["prefill_samples_s"])),
                decode_samples_s=tuple(map(float, each["decode_samples_s"])),
                source=_text(each["source"]),
            )
            for name, each in plain["latencies"].items()
        }
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name what perfsuite study wrote") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise PerfsuiteError(
            f"{path}: is no study ({type(error).__name__}: {error}); name what perfsuite study wrote"
        ) from error


def _text(plain: object) -> str:
    """Return what can be written again: a lone surrogate, which JSON may hold, raises UnicodeError, a ValueError."""
    text = str(plain)
    text.encode()
    return text
