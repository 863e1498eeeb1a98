"""What two recorders saw of one run, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from perfsuite.units import format_count, format_ns
from perfsuite.verdict.recorder_agreement import RecorderAgreement, TimesAgreement

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def agreement_lines(found: RecorderAgreement) -> Iterator[str]:
    """Yield whether they saw the same operators, and how far their total times lie apart."""
    same = "the same operators in the same order" if found.is_same else "not the same operators"
    evaluations = format_count(found.n_evaluations, "evaluation")
    yield f"{evaluations} seen by both recorders: {same}; {found.n_ebpf} by eBPF, {found.n_callback} by the callback"
    if found.n_callback_only or found.n_ebpf_only:
        yield f"seen by one alone: {found.n_callback_only} by the callback, {found.n_ebpf_only} by eBPF"
    if found.first_difference:
        yield f"{format_count(found.n_different, 'evaluation')} differ, first: {found.first_difference}"


def agreement_tables(found: RecorderAgreement) -> Iterator[Table]:
    """Yield the times of phases and operators, and what each thread's add up to."""
    times = Table("operators", "n", "eBPF", "callback", "eBPF/callback", box=None, pad_edge=False)
    for each in (*found.phases, *found.ops, found.total):
        times.add_row(*_cells(each))
    yield times
    threads = Table("thread", "in operators", "waiting", "of the graphs", "accounted", box=None, pad_edge=False)
    for account in found.threads:
        accounted = account.accounted_ratio
        threads.add_row(
            str(account.thread),
            format_ns(account.own_ns),
            format_ns(account.wait_ns),
            format_ns(account.graph_ns),
            "-" if accounted is None else f"{accounted * 100.0:.2f} %",
        )
    yield threads


def plain_agreement(found: RecorderAgreement) -> dict[str, Any]:
    """Return dicts, lists, numbers and strings."""
    plain = {"schema": SCHEMA, "is_same": found.is_same, **asdict(found)}
    plain["total"] = _plain_times(found.total)
    for name in ("phases", "ops"):
        plain[name] = [_plain_times(each) for each in getattr(found, name)]
    plain["threads"] = [{**asdict(each), "accounted_ratio": each.accounted_ratio} for each in found.threads]
    return plain


def _plain_times(each: TimesAgreement) -> dict[str, Any]:
    return {**asdict(each), "name": each.name or "all", "ratio": each.ratio}


def _cells(each: TimesAgreement) -> tuple[str, ...]:
    ratio = "-" if each.ratio is None else f"{each.ratio:.4f}"
    return each.name or "all", str(each.n_operators), format_ns(each.ebpf_ns), format_ns(each.callback_ns), ratio
