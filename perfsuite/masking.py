"""Passwords, keys and tokens in texts that are kept or shown: each becomes ``***``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_MASK = "***"

#: How the name of an option, a variable or a part of an address ends whose value is a secret; ``--n-tokens`` is none.
_SECRET = r"(?:token|secret|passw(?:or)?d|passphrase|credentials?|signature|(?:api|access|secret|private|auth)[-_]?key)"
_NAME = rf"(?:[\w.-]*[-_.])?{_SECRET}"

#: Who asks, and the password, in an address: ``https://user:password@host``.
_USER_INFO = re.compile(r"(?<=://)[^\s/?#'\"]*@")
#: As ssh is mistaken to take it: ``user:password@host``; ``ssh:user@host`` has none.
_LOGIN = re.compile(r"(?<![\w.-])(?!(?:ssh|serial|adb):)([\w.-]+):[^\s@/:]+@")
#: A part of an address's query, or of an assignment: ``?token=...``, ``AWS_SECRET_ACCESS_KEY=...``.
_ASSIGNED = re.compile(rf"(?<![\w.-])(-{{0,2}}{_NAME}=)[^\s&#'\"]+", re.IGNORECASE)
#: llama.cpp's short name of ``--hf-token`` is the one that does not end so.
_OPTION = re.compile(rf"(?:-{{1,2}}{_NAME}|-hft)", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text without the secrets of the addresses and assignments in it."""
    text = _LOGIN.sub(rf"\g<1>:{_MASK}@", _USER_INFO.sub(f"{_MASK}@", text))
    return _ASSIGNED.sub(rf"\g<1>{_MASK}", text)


def masked_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return a command's words without secrets, those of an option's own word included: ``--api-key ***``."""
    return tuple(_masked_words(words))


def _masked_words(words: Sequence[str]) -> Iterator[str]:
    is_secret = False
    for word in words:
        name, assigned, _ = word.partition("=")
        is_assigned = assigned and re.fullmatch(rf"-{{0,2}}{_NAME}", name, re.IGNORECASE)
        yield _MASK if is_secret else f"{name}={_MASK}" if is_assigned else masked(word)
        is_secret = _OPTION.fullmatch(word) is not None
