"""From an architecture and a request to the costs of its passes."""

from __future__ import annotations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.requests.analytic import Conventions
from perfsuite.expectation.requests.composition import compose, passes_of
from perfsuite.expectation.requests.engine_passes import EnginePasses
from perfsuite.expectation.requests.optimisations import Optimisations
from perfsuite.expectation.requests.paper_passes import PaperPasses
from perfsuite.expectation.requests.subject import find_subject
from perfsuite.workload.variant import find_variant

LLAMA = find_subject("llama-2-7b")
KV4 = Optimisations(variant=find_variant("bf16-int4-kv4"))


@pytest.mark.parametrize(
    ("conventions", "counts"), [(Conventions.ENGINE, EnginePasses), (Conventions.PAPER, PaperPasses)]
)
def test_the_conventions_choose_who_counts(conventions: Conventions, counts: type) -> None:
    """Either convention has passes of its own."""
    assert isinstance(passes_of(LLAMA, KV4, conventions), counts)


@pytest.mark.parametrize("conventions", list(Conventions))
def test_a_request_is_a_prompt_and_its_steps(conventions: Conventions) -> None:
    """The first step sees the prompt and itself, the last all but itself before it."""
    passes = passes_of(LLAMA, KV4, conventions)
    request = compose(passes, 300, 40)
    assert request.prefill.total == passes.prefill(300).total
    assert request.decode.n_steps == 40
    assert request.decode.at(0).total == passes.decode(300, 1).at(0).total
    assert request.decode.at(39).total == passes.decode(339, 1).at(0).total


@pytest.mark.parametrize("conventions", list(Conventions))
def test_steps_never_get_cheaper(conventions: Conventions) -> None:
    """Neither operations nor bytes nor the cache shrink as a generation goes on."""
    total = compose(passes_of(LLAMA, KV4, conventions), 100, 1000).decode.total
    for costs in (total.flops, total.moved_bytes, total.kv_read_bytes):
        assert (costs[1:] >= costs[:-1]).all()
        assert costs[-1] > costs[0]


@pytest.mark.parametrize(("n_prompt", "n_gen", "field"), [(0, 5, "n_prompt"), (-1, 5, "n_prompt"), (5, 0, "n_gen")])
def test_lengths_below_one_are_refused(n_prompt: int, n_gen: int, field: str) -> None:
    """Neither an empty prompt nor an empty generation is a request."""
    with pytest.raises(PerfsuiteError, match=f"{field} is .*, expected a positive integer"):
        compose(passes_of(LLAMA, KV4, Conventions.PAPER), n_prompt, n_gen)
