"""The case that somebody names on a command line: by its id, or by an end of it that no other case has."""

from __future__ import annotations

from collections.abc import Iterable

from perfsuite.errors import PerfsuiteError, meant

#: Candidates that an error lists; the others are counted.
_MOST_LISTED = 4


def named_case(asked: str, case_ids: Iterable[str], where: str) -> str:
    """Return the id that is meant: the whole of it, or whole parts of its end, such as ``decode/ffn_up``.

    Raises PerfsuiteError: no id ends so, or several do. `where` is what the line begins with, such as ``--case=``.
    """
    known = tuple(dict.fromkeys(case_ids))
    found = [asked] if asked in known else [each for each in known if f"/{each}".endswith(f"/{asked}")]
    if len(found) == 1:
        return found[0]
    if not found:
        alike = meant(asked, (*known, *ends_of(known, asked.count("/") + 1)))
        raise PerfsuiteError(f"{where}{asked}: no case has this id, or ends so{alike}")
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    listed = ", ".join(found[:_MOST_LISTED])
    raise PerfsuiteError(f"{where}{asked}: {len(found)} cases end so: {listed}{more}; name more parts of one")


def ends_of(case_ids: Iterable[str], n_parts: int) -> tuple[str, ...]:
    """Return the last parts of ids, each end once."""
    return tuple(dict.fromkeys("/".join(each.split("/")[-n_parts:]) for each in case_ids))
