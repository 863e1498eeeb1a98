"""Policies by shape in files: written whole, read with one clear error that names the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfsuite.errors import PolicyError
from perfsuite.records.json_file import write_json
from perfsuite.records.shape_policy import (
    SCHEMA,
    TILED,
    Choice,
    Decision,
    Gain,
    LeftOut,
    MeasuredSubject,
    PolicyRow,
    PolicyTable,
    ShapePolicy,
)
from perfsuite.records.shape_policy_fields import Fields, is_size, is_text, read_fields, shown


def write_policy(policy: ShapePolicy, path: Path) -> None:
    """Write a policy whole; PolicyError where the file cannot be written."""
    write_json(path, policy_plain(policy), PolicyError)


def read_policy(path: Path) -> ShapePolicy:
    """Read a policy; PolicyError names the file, the field, what it is and what is expected."""
    try:
        plain = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        raise PolicyError(f"{path}: cannot be read ({reason}); expected a file of 'perfsuite policy'") from None
    return policy_from_plain(plain, str(path))


def policy_plain(policy: ShapePolicy) -> dict[str, Any]:
    """Return a policy as dicts, lists, numbers and strings."""
    return {
        "schema": SCHEMA,
        "recorded_at": policy.recorded_at,
        "suite_version": policy.suite_version,
        "device": policy.device,
        "n_threads": policy.n_threads,
        "subjects": [
            {"subject": each.subject, "device": each.device, "fingerprint": dict(each.fingerprint)}
            for each in policy.subjects
        ],
        "tables": [_plain_table(each) for each in policy.tables],
    }


def policy_from_plain(plain: object, where: str) -> ShapePolicy:
    """Rebuild from `policy_plain`; PolicyError begins with `where` and names the field."""
    return read_fields(_policy, Fields(plain, where))


def _policy(fields: Fields) -> ShapePolicy:
    if (schema := fields.get("schema")) != SCHEMA:
        raise PolicyError(f"schema is {schema!r}, expected {SCHEMA}; measure the policy anew")
    return ShapePolicy(
        recorded_at=fields.text("recorded_at"),
        suite_version=fields.text("suite_version"),
        device=fields.text("device"),
        n_threads=fields.size("n_threads"),
        subjects=fields.each("subjects", _subject),
        tables=fields.each("tables", _table),
    )


def _subject(fields: Fields) -> MeasuredSubject:
    return MeasuredSubject(
        subject=fields.text("subject"),
        device=fields.text("device"),
        fingerprint=fields.pairs("fingerprint", is_text, "an object of texts"),
    )


def _table(fields: Fields) -> PolicyTable:
    decides = fields.text("decides")
    if decides not in {each.value for each in Decision}:
        known = " or ".join(each.value for each in Decision)
        raise PolicyError(f"decides is {shown(decides)}, expected {known}")
    return PolicyTable(
        decides=Decision(decides),
        operation=fields.text("operation"),
        type=fields.text("type"),
        dimension=fields.text("dimension"),
        fixed=fields.pairs("fixed", is_size, "an object of whole numbers of 1 or more"),
        measured_sizes=fields.sizes("measured_sizes"),
        n_processes=fields.size("n_processes"),
        default=fields.part("default", _choice),
        worst=fields.part("worst", _choice),
        gain_over_default=fields.part("gain_over_default", _gain),
        gain_over_worst=fields.part("gain_over_worst", _gain),
        rows=fields.each("rows", _row),
        left_out=fields.each("left_out", _left_out),
    )


def _row(fields: Fields) -> PolicyRow:
    return PolicyRow(
        least=fields.size("least"),
        most=fields.size("most"),
        measured_least=fields.size("measured_least"),
        measured_most=fields.size("measured_most"),
        choice=fields.part("choice", _choice),
        gain_over_default=fields.part("gain_over_default", _gain),
        gain_over_worst=fields.part("gain_over_worst", _gain),
    )


def _choice(fields: Fields) -> Choice:
    subject = fields.text("subject")
    if subject != TILED:
        return Choice(subject=subject)
    return Choice(subject=subject, tile=fields.size("tile"), vector=fields.size("vector"))


def _gain(fields: Fields) -> Gain:
    return Gain(
        ratio=fields.ratio("ratio"), lower_ratio=fields.ratio("lower_ratio"), upper_ratio=fields.ratio("upper_ratio")
    )


def _left_out(fields: Fields) -> LeftOut:
    return LeftOut(choice=fields.part("choice", _choice), reason=fields.text("reason"))


def _plain_table(table: PolicyTable) -> dict[str, Any]:
    return {
        "decides": table.decides.value,
        "operation": table.operation,
        "type": table.type,
        "dimension": table.dimension,
        "fixed": dict(table.fixed),
        "measured_sizes": list(table.measured_sizes),
        "n_processes": table.n_processes,
        "default": _plain_choice(table.default),
        "worst": _plain_choice(table.worst),
        "gain_over_default": _plain_gain(table.gain_over_default),
        "gain_over_worst": _plain_gain(table.gain_over_worst),
        "rows": [_plain_row(each) for each in table.rows],
        "left_out": [{"choice": _plain_choice(each.choice), "reason": each.reason} for each in table.left_out],
    }


def _plain_row(row: PolicyRow) -> dict[str, Any]:
    return {
        "least": row.least,
        "most": row.most,
        "measured_least": row.measured_least,
        "measured_most": row.measured_most,
        "choice": _plain_choice(row.choice),
        "gain_over_default": _plain_gain(row.gain_over_default),
        "gain_over_worst": _plain_gain(row.gain_over_worst),
    }


def _plain_choice(choice: Choice) -> dict[str, Any]:
    if choice.tile is None:
        return {"subject": choice.subject}
    return {"subject": choice.subject, "tile": choice.tile, "vector": choice.vector}


def _plain_gain(gain: Gain) -> dict[str, float]:
    return {"ratio": gain.ratio, "lower_ratio": gain.lower_ratio, "upper_ratio": gain.upper_ratio}
