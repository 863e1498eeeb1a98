"""What to do next after a run: at most three steps, each with its command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from perfsuite.records.case import is_question
from perfsuite.records.outcome import NO_ATTRIBUTION, ORDER_OF_WEIGHT, Attribution, Judgement, Outcome
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.reproduce import MOST_NAMED, command_again, option_value, shell_word
from perfsuite.report.verdict_words import are_counted, in_order_of_weight
from perfsuite.report.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What is known of a run when it has ended."""

    judgements: tuple[Judgement, ...]
    #: None where it could not be written.
    run_path: str | None
    report_path: str | None
    origin: RunOrigin
    attribution: Attribution = NO_ATTRIBUTION
    #: Whether it was asked to record baselines, and whether somebody broke it off.
    is_recording: bool = False
    is_interrupted: bool = False

    def of(self, outcome: Outcome) -> tuple[Judgement, ...]:
        """Return the cases of an outcome, those that weigh most first."""
        return in_order_of_weight([each for each in self.judgements if each.outcome is outcome], self.attribution)

    @property
    def in_pairs(self) -> bool:
        """Whether an old side was measured along with the new one."""
        return any(each.n_pairs is not None for each in self.judgements)

    @property
    def is_injected(self) -> bool:
        """Whether something was slowed down on purpose."""
        return option_value(self.origin, "--perf-inject") is not None


#: More than this nobody does.
MAX_STEPS = 3

#: What a run takes where it was not told.
_USUAL_REPLICATES, _USUAL_BUDGET_S = 10, 90.0

_RECORDED: Mapping[str, str | None] = {"--baseline": "record"}

#: What a paired run must be asked for to become a reference.
_ALONE = {**_RECORDED, "--against": None, "--against-model": None, "--against-args": None}

#: More pairs than this are no advice.
_MOST_FACTOR = 20.0


#: A step: what it is for, and its command, which may be empty.
Step = tuple[str, str]


def next_steps(run: EndedRun) -> tuple[str, ...]:
    """Return the lines of the steps, the most urgent first, each command on a line of its own to be copied."""
    lines = []
    for number, (why, command) in enumerate(islice(steps_after(run), MAX_STEPS), 1):
        lines += [f"  {number}. {why}{':' if command else ''}", *([f"     {command}"] if command else [])]
    return ("what next:", *lines) if lines else ()


def steps_after(run: EndedRun) -> Iterator[Step]:
    """Return all steps, the most urgent first."""
    for outcome in ORDER_OF_WEIGHT:
        if outcome in _STEPS and (found := run.of(outcome)):
            yield from _STEPS[outcome](run, found)
    if undecided := run.of(Outcome.INCONCLUSIVE):
        yield from _untimed(run, undecided)


def _impossible(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    yield (
        f"{_named(found)} came out faster than physics allows: a measurement is wrong; see whether it stays so",
        command_again(run.origin, found[:MOST_NAMED]),
    )
    yield from _look(run)


def _regressed(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    if are_counted(found):
        yield from _look(run, "which operators do more work")
        yield "if it is meant to be so, keep the new counts", command_again(run.origin, (), _RECORDED)
        return
    if run.in_pairs:
        yield "measure what regressed again, to be sure", command_again(run.origin, found[:MOST_NAMED])
    else:
        yield (
            "make sure, in pairs with the build before (FOLDER: that of its libllama.so)",
            command_again(run.origin, found[:MOST_NAMED], {"--against": "FOLDER"}),
        )
    yield from _look(run)
    if run.run_path is not None and not run.is_injected and not run.in_pairs:
        command = _approval(run, run.run_path, "WHAT CHANGED, AND WHY IT IS RIGHT")
        yield "if it is meant to be so, accept it, with the reason", command


def _slow(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    forecast = [each for each in found if each.limit_ns is not None]  # the others are beyond a limit of their own
    if forecast:
        yield (
            f"{_named(forecast)} took longer than the forecast allows: where device or engine are new to it, calibrate",
            " ".join(["perfsuite calibrate", *_device_option(run)]),
        )
    yield "see whether it stays so", command_again(run.origin, found[:MOST_NAMED])
    yield from _look(run)


def _invalid(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    (reason, _), *_ = Counter(each.reason for each in found).most_common(1)
    seen, _, advice = reason.partition("; ")
    what = "free the machine for" if advice.startswith("free the machine") else "fix the cause of"
    changed = _RECORDED if run.is_recording else {}
    yield f"{what} what could not be measured ({visible(seen)}), then", command_again(run.origin, found, changed)


def _incomparable(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    stored = [each for each in found if each.n_pairs is None]  # what one side of pairs alone has is a finding
    if not stored:
        return
    (reason, _), *_ = Counter(each.reason for each in stored).most_common(1)
    yield (
        f"measure as the baseline was, or keep this as a reference of its own ({visible(reason)})",
        command_again(run.origin, (), _RECORDED),
    )


def _open(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    """Decide what is suspect or, where nothing is, undecided: of pairs the questions first, for parts cost the most."""
    if run.in_pairs and found[0].outcome is Outcome.INCONCLUSIVE and run.of(Outcome.SUSPECT):
        return
    if run.in_pairs:
        found = [each for each in found if is_question(each.case_id)] or found
        n_more, budget = _more_pairs(run, found)
        pairs = f"about {n_more} more pairs" if n_more else "more pairs"
        yield f"let {pairs} decide {_named(found)}", command_again(run.origin, (), {"--perf-budget": budget})
        return
    timed = [each for each in found if each.samples_ns]
    if not timed:
        return
    n_replicates = 2 * int(option_value(run.origin, "--perf-replicates") or _USUAL_REPLICATES)
    yield (
        f"let twice as many replicates decide {_named(timed)}, with nothing else running",
        command_again(run.origin, timed, {"--perf-replicates": str(n_replicates)}),
    )


def _untimed(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    """Of what no further replicate decides, such as how threads share an operator, say where the reason is."""
    where = run.report_path or run.run_path
    if where is not None and not any(each.samples_ns for each in found):
        why = f"see why {_named(found)} could not be decided, which more replicates do not change"
        yield why, shell_word(where)


def _new(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    if run.is_injected or run.is_recording:
        return
    failing = [each for each in run.judgements if each.outcome.fails]
    if not failing:
        what = "these counts" if are_counted(found) else "this machine's times"
        yield (
            f"nothing is stored for {_named(found)}: keep {what} as the reference",
            command_again(run.origin, (), _RECORDED),
        )


def _improved(run: EndedRun, found: Sequence[Judgement]) -> Iterator[Step]:
    if run.is_injected:
        return
    if are_counted(found):
        yield f"{_named(found)}: less work; keep the new counts", command_again(run.origin, (), _RECORDED)
        return
    if run.in_pairs:
        yield (
            f"{_named(found)} got faster: record it without the old side, so that it is kept",
            command_again(run.origin, (), _ALONE),
        )
    elif run.run_path is not None:
        command = _approval(run, run.run_path, "WHAT MADE IT FASTER")
        yield f"{_named(found)} got faster: make that the reference, so that it is kept", command


def _approval(run: EndedRun, run_path: str, reason: str) -> str:
    words = ["perfsuite", "baseline", "approve", run_path, "--reason", reason]
    folder = option_value(run.origin, "--baseline-dir")
    return " ".join(map(shell_word, [*words, *([] if folder is None else ["--baseline-dir", folder])]))


def _look(run: EndedRun, what: str = "where the time went") -> Iterator[Step]:
    if run.report_path is not None:
        yield f"see {what}, in a browser", shell_word(run.report_path)


_STEPS: Mapping[Outcome, Callable[[EndedRun, Sequence[Judgement]], Iterator[Step]]] = {
    Outcome.REGRESSED: _regressed,
    Outcome.IMPOSSIBLE: _impossible,
    Outcome.SLOW: _slow,
    Outcome.SUSPECT: _open,
    Outcome.IMPROVED: _improved,
    Outcome.INVALID: _invalid,
    Outcome.INCOMPARABLE: _incomparable,
    Outcome.INCONCLUSIVE: _open,
    Outcome.NEW: _new,
}


def _named(found: Sequence[Judgement]) -> str:
    return visible(found[0].case_id) if len(found) == 1 else f"{len(found)} cases"


def _device_option(run: EndedRun) -> list[str]:
    device = option_value(run.origin, "--device")
    return [] if device is None else [f"--device={shell_word(device)}"]


def _more_pairs(run: EndedRun, found: Sequence[Judgement]) -> tuple[int | None, str]:
    """Return how many more pairs decide the most of what can be decided, and the time for all of them."""
    needs = sorted(each.n_more_pairs for each in found if each.n_more_pairs is not None)
    n_pairs = max((each.n_pairs or 0 for each in found), default=0) or 1
    affordable = [need for need in needs if need <= n_pairs * _MOST_FACTOR]
    n_more = affordable[-1] if affordable else None
    factor = 2.0 if n_more is None else (n_pairs + n_more) / n_pairs
    return n_more, f"{_budget_s(run) * factor:.0f}s"


def _budget_s(run: EndedRun) -> float:
    text = option_value(run.origin, "--perf-budget")
    if text is None:
        return _USUAL_BUDGET_S
    return float(text.rstrip("sm")) * (60.0 if text.endswith("m") else 1.0)
