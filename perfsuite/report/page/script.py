"""A script as a page holds it inline, with what lets it run there and no other."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PageScript:
    """A script of the suite's own."""

    name: str
    text: str

    @property
    def csp_source(self) -> str:
        """What allows this script and no other in ``script-src``, with its quotes."""
        digest = hashlib.sha256(self.text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
