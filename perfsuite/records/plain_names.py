"""Names out of files and options of which paths are made."""

from __future__ import annotations

import re

from perfsuite.errors import PerfsuiteError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
_RULE = "letters, digits, '.', '_' and '-', not beginning with '.' or '-'"
_MAX_CHARACTERS = 60


def plain_name(name: str, what: str, error_type: type[PerfsuiteError]) -> str:
    """Return a name that is one part of a path and leads nowhere else; a message begins with `what` is called so.

    Raises PerfsuiteError: of `error_type`: it is another, such as ``../x``.
    """
    if _NAME.fullmatch(name):
        return name
    raise error_type(f"{what} is {repr(name)[:_MAX_CHARACTERS]}, expected a plain name: {_RULE}")
