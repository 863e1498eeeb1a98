"""Where a history lies: in a folder, or below a prefix of a bucket on S3."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from perfsuite.errors import HistoryError, require

#: What begins the address of something that is no folder.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

#: A bucket's name, and a prefix whose parts are names. *Source*: Amazon S3 User Guide, "General purpose bucket naming
#: rules"; other servers of S3 take no more.
_S3 = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,62}(?:/(?!\.{1,2}(?:/|$))[^/\0]+)*/?")


#: A folder, or the address of a prefix such as ``s3://farm/history``; S3's endpoint and credentials are those of the
#: environment.
HistoryPlace: TypeAlias = Path | str


def history_place(named: str, asked: str) -> HistoryPlace:
    """Return the place that somebody names; `asked` is how, before the name in a message.

    Raises HistoryError: it is an address of another kind, or what speaks to S3 is not installed.
    """
    if not _SCHEME.match(named):
        return Path(named)
    if not _S3.fullmatch(named):
        expected = "a folder of this machine, mounted ones included, or s3://BUCKET/PREFIX"
        raise HistoryError(f"{asked}{named}: is an address, expected {expected}")
    require("obstore", f"{asked}{named}", HistoryError)
    return named.rstrip("/")
