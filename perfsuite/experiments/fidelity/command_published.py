"""``perfsuite fidelity --published``: lm-Meter's printed accuracies, computed again from its printed latencies."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, give
from perfsuite.experiments.fidelity.lm_meter_rows import MeanCheck, PrintedScore, RowCheck, check_means, check_rows
from perfsuite.experiments.fidelity.published import published_fidelity

#: Raised whenever a field of the JSON changes its meaning.
SCHEMA = 1

_SAID = {True: "within", False: "outside", None: "no latencies"}


def run_published(arguments: argparse.Namespace) -> int:
    """Print each row with what rounding allows, then what is outside; `arguments.json` is for programs."""
    published = published_fidelity()
    rows, means = check_rows(published), tuple(check_means(published))
    plain = {"schema": SCHEMA, "paper": published.paper.name, "rows": [_plain(each) for each in rows]}
    plain["means"] = [asdict(each) for each in means]
    give(Answer(parts=lambda: _parts(rows, means), plain=lambda: plain), arguments)
    return 0


def _plain(check: RowCheck) -> dict[str, Any]:
    return {
        **asdict(check.row),
        "is_within": check.is_within,
        "scores_agree": check.scores_agree,
        "accuracy": _score_plain(check.accuracy),
        "scaled_error": _score_plain(check.scaled_error),
    }


def _score_plain(score: PrintedScore | None) -> dict[str, Any] | None:
    return None if score is None else {**asdict(score), "is_within": score.is_within, "is_cut": score.is_cut}


def _parts(rows: Sequence[RowCheck], means: Sequence[MeanCheck]) -> Iterator[Part]:
    yield _sheet(rows)
    computed = [each for each in rows if each.is_within is not None]
    n_within = sum(each.is_within is True for each in computed)
    yield f"{n_within} of {len(computed)} rows with latencies are within rounding"
    for each in rows:
        for sentence in _complaints(each):
            yield f"  {each.row.device or each.row.table}, {each.row.subject}, {each.row.name}: {sentence}"
    n_agree = sum(each.scores_agree for each in rows)
    yield f"in {n_agree} of {len(rows)} rows the printed accuracy is that of the printed scaled error"
    for mean in means:
        yield (
            f"{mean.device}, {mean.table}: mean of the printed rows {mean.computed_percent:.2f} %, stated "
            f"{mean.stated_percent:.2f} %, {_SAID[mean.is_within]} rounding"
        )


def _complaints(check: RowCheck) -> list[str]:
    found = []
    for name, unit, score in (("accuracy", "%", check.accuracy), ("scaled error", "µs/ms", check.scaled_error)):
        if score is not None and not score.is_within:
            reason = ", as if digits had been cut off" if score.is_cut else ""
            ends = f"{score.least:.4f} to {score.most:.4f}"
            found.append(f"{name} {score.printed:g} {unit}, the latencies give {ends}{reason}")
    if not found and not check.scores_agree:
        error = check.row.scaled_error_us_per_ms
        found.append(f"accuracy {check.row.accuracy_percent:g} % is not that of its scaled error, {error:g} µs/ms")
    return found


def _sheet(rows: Sequence[RowCheck]) -> Sheet:
    return Sheet(
        ("of", "name", ">accuracy %", ">computed", ">µs/ms", ">computed", ">rounding"),
        [
            (
                *(each.row.subject, each.row.name, f"{accuracy.printed:.2f}", f"{accuracy.computed:.2f}"),
                *(f"{error.printed:.3f}", f"{error.computed:.3f}", _SAID[each.is_within]),
            )
            for each in rows
            if (accuracy := each.accuracy) is not None and (error := each.scaled_error) is not None
        ],
    )
