"""The head of the page: the verdict, what came out in numbers, and what was measured on what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.outcome import ORDER_OF_WEIGHT, Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.report.engine_words import commit_title, engine_words
from perfsuite.report.page.answer import Answer, against_words, answer_of, sure_words
from perfsuite.report.page.findings import Finding
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.words import capitalized, commit_words, duration_words, tone_word, when_words
from perfsuite.report.verdict_words import change_words, verdict_parts, verdict_tone
from perfsuite.report.visible import isolated_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the reader sees first."""

    title: str
    #: ``bad``, ``unsure`` or ``good``.
    tone: str
    tone_word: str
    #: The verdict in two sentences: what matters most, and all else that came out; the latter may be empty.
    verdict: str
    further: str
    #: What must be known beside the verdict, each a sentence.
    remarks: tuple[str, ...]
    #: What having the device came to, each in a few words.
    notes: tuple[str, ...]
    #: What must be acted upon first.
    counts: Mapping[Outcome, int]
    n_cases: int
    #: Whether any of them was measured and compared.
    is_judged: bool
    facts: Mapping[str, str]
    answer: Answer


def page_head(page_run: PageRun, findings: Sequence[Finding] = ()) -> Head:
    """Return the head of the page about a run, of which the findings are the cases that changed."""
    run, answer = page_run.run, answer_of(page_run, findings)
    tone = verdict_tone(run)
    counts = Counter(judgement.outcome for judgement in run.judgements)
    verdict, *others = verdict_parts(run, named=isolated_name)
    return Head(
        title=f"{tone_word(tone)}: {run.device}, {run.workload}, {when_words(run.started_at)}",
        tone=tone.value,
        tone_word=tone_word(tone),
        verdict=f"{capitalized(verdict)}.",
        further=f"{capitalized('; '.join(others))}." if others else "",
        remarks=tuple(_remarks(run)),
        notes=tuple(dict.fromkeys(run.device_notes)),
        counts={outcome: counts[outcome] for outcome in ORDER_OF_WEIGHT if counts[outcome]},
        n_cases=len(run.judgements),
        is_judged=any(each.outcome.decides for each in run.judgements),
        facts={name: value for name, value in _facts(run, answer) if value},
        answer=answer,
    )


def _remarks(run: RunFile) -> Iterator[str]:
    if run.is_injected:
        yield "This run was slowed down on purpose (--perf-inject): it tests the verdict and is no reference."
    if run.is_interrupted:
        yield "This run was broken off: it holds what was measured until then."
    shift = run.attribution.uniform_shift
    if shift is not None:
        yield (
            f"Everything {change_words(shift.ratio)} ({shift.n_cases} cases moved alike): the cause is in no single "
            "operator. Look at frequency, memory, threads and build before anything else."
        )


def _facts(run: RunFile, answer: Answer) -> Iterator[tuple[str, str]]:
    yield "Compared with", against_words(run)
    yield "How sure", sure_words(answer.lines)
    yield "Engine", engine_words(run.subjects)
    yield "Device", _device_words(run)
    if run.origin.board:
        yield "Board" if run.origin.board.is_linked else "Machine", run.origin.board.text
    yield "Workload", run.workload
    yield "Measured", f"{when_words(run.started_at)}, {duration_words(run)}"
    yield commit_title(run.origin), commit_words(run)


def _device_words(run: RunFile) -> str:
    socs = (fields.get("soc", "") for fields in run.fingerprints.values())
    soc = next(filter(None, socs), "")
    return f"{run.device} ({soc})" if soc else run.device
