"""One figure of the page: what it shows in words, and its Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

#: A Vega-Lite specification, or a part of one, as values that JSON has.
Spec: TypeAlias = dict[str, Any]

#: Shorter data are no shorter when they are packed.
_LEAST_PACKED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure as the page shows it."""

    #: A fixed word, unique on the page, fit for an attribute: ``operators-decode``.
    figure_id: str
    #: Which part of the page it belongs to: changes, phases, operators, kernels, attribution, roofline, timeline,
    #: tokens, graph, machine or runs.
    subject: str
    title: str
    #: What is to be seen, in words, for those who do not see it.
    summary: str
    spec: Spec


def specs_by_id(figures: Iterable[Figure]) -> dict[str, Spec]:
    """Return the specifications as the script expects them: each with its summary as description, its data packed."""
    return {figure.figure_id: packed({**figure.spec, "description": figure.summary}) for figure in figures}


def packed(part: Any) -> Any:
    """Return a part of a specification in which long data name their fields once.

    Instead of ``values``, a list of records, such data have ``fields``, ``rows`` with a value for each of them (None
    where a record has none), and ``words``: by field that says the same of many records, what it says; its values are
    places in there.
    """
    if isinstance(part, list):
        return [packed(each) for each in part]
    if not isinstance(part, dict):
        return part
    values = part.get("values")
    if isinstance(values, list) and len(values) >= _LEAST_PACKED and all(isinstance(each, dict) for each in values):
        others = {key: packed(each) for key, each in part.items() if key != "values"}
        return {**others, **_columns(values)}
    return {key: packed(each) for key, each in part.items()}


def _columns(records: Sequence[Spec]) -> Spec:
    fields = list(dict.fromkeys(field for each in records for field in each))
    columns = {field: [each.get(field) for each in records] for field in fields}
    words = {field: list(dict.fromkeys(column)) for field, column in columns.items() if _repeats(column)}
    for field, known in words.items():
        places = {word: place for place, word in enumerate(known)}
        columns[field] = [places[word] for word in columns[field]]
    return {"fields": fields, "words": words, "rows": [list(row) for row in zip(*columns.values(), strict=True)]}


def _repeats(column: Sequence[Any]) -> bool:
    return all(isinstance(each, str) for each in column) and len(set(column)) * 2 <= len(column)
