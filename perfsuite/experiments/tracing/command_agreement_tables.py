"""What two recorders saw of one run, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, figure, percent
from perfsuite.experiments.tracing.recorder_agreement import RecorderAgreement, TimesAgreement
from perfsuite.units import format_count, format_ns

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def agreement_answer(found: RecorderAgreement) -> Answer:
    """Return whether they saw the same operators, and how far their times lie apart, in all and by thread."""
    return Answer(parts=lambda: _parts(found), plain=lambda: _plain(found))


def _parts(found: RecorderAgreement) -> Iterator[Part]:
    same = "the same operators in the same order" if found.is_same else "not the same operators"
    evaluations = format_count(found.n_evaluations, "evaluation")
    yield f"{evaluations} seen by both recorders: {same}; {found.n_ebpf} by eBPF, {found.n_callback} by the callback"
    if found.n_callback_only or found.n_ebpf_only:
        yield f"seen by one alone: {found.n_callback_only} by the callback, {found.n_ebpf_only} by eBPF"
    if found.first_difference:
        yield f"{format_count(found.n_different, 'evaluation')} differ, first: {found.first_difference}"
    times = [
        (
            *(each.name or "all", each.n_operators, format_ns(each.ebpf_ns), format_ns(each.callback_ns)),
            figure("{:.4f}", each.ratio),
        )
        for each in (*found.phases, *found.ops, found.total)
    ]
    yield Sheet(("operators", "n", "eBPF", "callback", "eBPF/callback"), times)
    threads = [
        (each.thread, *map(format_ns, (each.own_ns, each.wait_ns, each.graph_ns)), percent(each.accounted_ratio, 2))
        for each in found.threads
    ]
    yield Sheet(("thread", "in operators", "waiting", "of the graphs", "accounted"), threads)


def _plain(found: RecorderAgreement) -> dict[str, Any]:
    plain = {"schema": SCHEMA, "is_same": found.is_same, **asdict(found)}
    plain["total"] = _plain_times(found.total)
    for name in ("phases", "ops"):
        plain[name] = [_plain_times(each) for each in getattr(found, name)]
    plain["threads"] = [{**asdict(each), "accounted_ratio": each.accounted_ratio} for each in found.threads]
    return plain


def _plain_times(each: TimesAgreement) -> dict[str, Any]:
    return {**asdict(each), "name": each.name or "all", "ratio": each.ratio}
