"""Annotations of GitHub Actions: workflow commands on standard output, one a line.

*Source*: GitHub Docs, "Workflow commands for GitHub Actions"; the escaping is that of @actions/core, command.ts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports import Export
from perfsuite.report.exports.markdown_text import one_line
from perfsuite.report.verdict_words import (
    carrier_words,
    case_change_words,
    case_words,
    in_order_of_weight,
    verdict_sentence,
)
from perfsuite.units import format_count

#: Of each level, GitHub shows no more of one step.
MAX_PER_LEVEL = 10

_MAX_MESSAGE_CHARACTERS = 1_000

#: What keeps a case from being judged.
_UNJUDGED = (Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE)


def annotations_text(runs: Sequence[RunFile]) -> str:
    """Return a notice with each verdict, an error for each failing case, a warning for what is suspect or open."""
    notices = [_command("notice", run.workload, verdict_sentence(run)) for run in runs]
    errors = [
        _error(run, each)
        for run in runs
        for each in in_order_of_weight(filter(lambda each: each.outcome.fails, run.judgements), run.attribution)
    ]
    warnings = [warning for run in runs for warning in _warnings(run)]
    lines = [
        *_at_most("notice", notices, "run"),
        *_at_most("error", errors, "failing case"),
        *_at_most("warning", warnings, "reason"),
    ]
    return "".join(f"{line}\n" for line in lines)


def _error(run: RunFile, judgement: Judgement) -> str:
    title = f"{judgement.outcome.value}: {case_words(judgement)}"
    if judgement.outcome is Outcome.REGRESSED and judgement.change_ratio is not None:
        title = f"{case_words(judgement)} {case_change_words(judgement)}"
    carriers = carrier_words(judgement.case_id, run.attribution)
    return _command("error", title, ", ".join(filter(None, (f"{judgement.case_id}: {judgement.reason}", carriers))))


def _warnings(run: RunFile) -> list[str]:
    """Warn of each suspect case, then once of each reason that cases share; of undecided cases once for all."""
    suspects = [each for each in run.judgements if each.outcome is Outcome.SUSPECT]
    found = [each for each in run.judgements if each.outcome in _UNJUDGED]
    noisy = "too noisy to tell"
    reasons = Counter((each.outcome, noisy if each.outcome is Outcome.INCONCLUSIVE else each.reason) for each in found)
    return [
        *(
            _command("warning", f"{case_words(each)} looks slower, not proven", f"{each.case_id}: {each.reason}")
            for each in in_order_of_weight(suspects, run.attribution)
        ),
        *(
            _command("warning", f"{format_count(count, 'case')} {outcome.value}", f"{run.workload}: {reason}")
            for (outcome, reason), count in reasons.most_common()
        ),
    ]


def _at_most(level: str, commands: Sequence[str], noun: str) -> Sequence[str]:
    """Let the last that GitHub shows say how many it would not have shown."""
    if len(commands) <= MAX_PER_LEVEL:
        return commands
    n_left_out = len(commands) - (MAX_PER_LEVEL - 1)
    told = f"{format_count(n_left_out, f'more {noun}')}, which the report of the run has"
    return [*commands[: MAX_PER_LEVEL - 1], _command(level, "perfsuite", told)]


def _command(level: str, title: str, message: str) -> str:
    shown = one_line(message, max_characters=_MAX_MESSAGE_CHARACTERS)
    named = _escaped(one_line(title)).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{_escaped(shown)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


EXPORTS = (
    Export(
        name="github-annotations",
        summary="workflow commands for the log of a GitHub Actions step",
        text=annotations_text,
        place=4,
    ),
)
