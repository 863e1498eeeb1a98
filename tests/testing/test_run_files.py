"""Made-up runs."""

from __future__ import annotations

import unicodedata

import pytest

from perfsuite.records.outcome import Outcome
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_run


def test_every_character_with_a_meaning_somewhere_is_among_them() -> None:
    """What HTML, Markdown, CSV, labels, templates or a terminal take for their own; each name once, one of 300.

    So are right-to-left letters, the override of the direction, and pictures that are joined.
    """
    used = set("".join(HOSTILE_NAMES))
    assert set("<>&\"'`{}[]()|\\%$#*_~!=+-@,;:/") | {"\n", "\t", "\x1b", "\u200d"} <= used
    assert {"R", "AL", "RLO"} <= {unicodedata.bidirectional(each) for each in used}
    assert len({name.strip() for name in HOSTILE_NAMES}) == len(HOSTILE_NAMES)
    assert max(map(len, HOSTILE_NAMES)) == 300
    assert [name.encode().decode() for name in HOSTILE_NAMES] == list(HOSTILE_NAMES)


@pytest.mark.parametrize("n_cases", [60, 500])
def test_every_outcome_is_there(n_cases: int) -> None:
    assert {each.outcome for each in synthetic_run(n_cases=n_cases).judgements} == set(Outcome)


def test_names_are_wherever_somebody_chooses_words() -> None:
    """Every name is that of a case; device, workload, subject, environment, branch and carriers have one too."""
    run = synthetic_run(names=HOSTILE_NAMES)
    assert {f"tokenizer/{name}" for name in HOSTILE_NAMES} <= {each.case_id for each in run.judgements}
    assert run.origin.commit is not None
    words = [run.device, run.workload, run.subjects["llama"], run.origin.commit.branch, run.against]
    words += [run.attribution.phases[0].carriers[0].role, *run.origin.environment.values()]
    assert set(words) <= set(HOSTILE_NAMES)
