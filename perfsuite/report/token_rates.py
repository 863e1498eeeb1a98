"""Prefill and decode in tokens a second, by the tokens that their cases are about."""

from __future__ import annotations

from perfsuite.errors import PerfsuiteError
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement
from perfsuite.units import NS_PER_S, format_ns, format_tokens_per_s
from perfsuite.workload.scenario import find_scenario


def tokens_per_s(judgement: Judgement) -> float | None:
    """Return the measured speed of a prefill or a decode; None of other cases, and where it is not known."""
    return _rate(judgement, judgement.measured_ns)


def timed(judgement: Judgement, time_ns: int | None) -> str:
    """Return a time of the case, with its tokens a second where it has such: ``34.8 ms (28.7 tokens/s)``."""
    rate = _rate(judgement, time_ns)
    return format_ns(time_ns) if rate is None else f"{format_ns(time_ns)} ({format_tokens_per_s(rate)} tokens/s)"


def _rate(judgement: Judgement, time_ns: int | None) -> float | None:
    n_tokens = _n_tokens(judgement)
    return n_tokens * NS_PER_S / time_ns if n_tokens and time_ns else None


def _n_tokens(judgement: Judgement) -> int | None:
    """Return the tokens of a decode step or a prefill; those of several prompts have no one number."""
    if judgement.kind != "phase":
        return None
    *_, scenario, phase = ("", *judgement.case_id.split("/"))
    if phase == Phase.DECODE.value:
        return 1
    return _n_prompt(scenario) if phase == Phase.PREFILL.value else None


def _n_prompt(scenario: str) -> int | None:
    try:
        return find_scenario(scenario).n_prompt
    except PerfsuiteError:
        return None
