"""From an architecture, its optimisations and the lengths of a request to what each of its passes costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.operators.tiling import check_positive
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.engine_passes import EnginePasses
from perfsuite.expectation.requests.engine_variant import engine_request
from perfsuite.expectation.requests.paper_passes import PaperPasses
from perfsuite.expectation.requests.step_costs import StepCosts
from perfsuite.expectation.requests.subject import Optimisations, Subject
from perfsuite.records.op_cost import PassCost

_TOO_LARGE = "a decode step costs more than 64 bits hold; expected an architecture, a batch and a context that fit"


class Passes(Protocol):
    """What counts the passes of an architecture, by either of the conventions."""

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt, all chunks of it."""

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost `n_steps` steps of `n_tokens` each, of which the first sees `n_past` positions and its own tokens.

        Each later step sees one position more.
        """


@dataclass(frozen=True, kw_only=True)
class RequestCost:
    """What one request costs: a prompt, and the tokens generated after it."""

    n_prompt: int
    n_gen: int
    prefill: PassCost
    #: Step i (from 0) sees the prompt, the i tokens before it and itself.
    decode: StepCosts


def passes_of(subject: Subject, optimisations: Optimisations, conventions: Conventions) -> Passes:
    """Choose who counts; what the conventions do not know is a PerfsuiteError.

    The passes remember what they counted, so that one of them should serve all lengths of a sweep.
    """
    if conventions is Conventions.PAPER:
        return PaperPasses(subject.architecture, optimisations)
    return EnginePasses(
        engine_request(subject, optimisations),
        chunk=optimisations.chunk,
        n_sequences=optimisations.n_sequences,
        tile=optimisations.tile,
    )


def compose(passes: Passes, n_prompt: int, n_gen: int) -> RequestCost:
    """Cost a request: the prefill, and every decode step from n_prompt + 1 to n_prompt + n_gen positions."""
    check_positive(n_prompt=n_prompt, n_gen=n_gen)
    return RequestCost(
        n_prompt=n_prompt, n_gen=n_gen, prefill=passes.prefill(n_prompt), decode=_decode(passes, n_prompt, n_gen)
    )


def _decode(passes: Passes, n_prompt: int, n_gen: int) -> StepCosts:
    try:
        decode = passes.decode(n_prompt, n_gen)
    except OverflowError as error:
        raise PerfsuiteError(_TOO_LARGE) from error
    if min(decode.total.flops.min(), decode.total.moved_bytes.min()) < 0:
        raise PerfsuiteError(_TOO_LARGE)
    return decode
