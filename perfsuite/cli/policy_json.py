"""What ``perfsuite policy check --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from perfsuite.records.shape_policy import PolicyTable
from perfsuite.verdict.shapes.policy_check import PromiseCheck

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def checks_plain(checked: Iterable[tuple[PolicyTable, tuple[PromiseCheck, ...]]]) -> dict[str, Any]:
    """Return the checks of each table as dicts, lists, numbers and strings."""
    tables = [{"table": table.title, "checks": [_plain(each) for each in checks]} for table, checks in checked]
    return {"schema": SCHEMA, "tables": tables}


def _plain(check: PromiseCheck) -> dict[str, Any]:
    promise = check.promise
    return {
        "least": promise.row.least,
        "most": promise.row.most,
        "choice": str(promise.row.choice),
        "over": str(promise.over),
        "promised": asdict(promise.promised),
        "measured": None if check.measured is None else asdict(check.measured),
        "sizes": list(promise.drawn.sizes),
        "fitted_sizes": list(promise.drawn.fitted_sizes),
        "holding": check.holding.value,
        "reason": check.reason or None,
    }
