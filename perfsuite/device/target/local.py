"""This machine."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.device.reach import Reach
from perfsuite.device.target.protocol import last_line
from perfsuite.device.target.shell import refuse_long


class LocalLink:
    """The shell of this machine."""

    text = "local"

    def __init__(self, reach: Reach) -> None:
        """It has no address."""

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return the shell with the script as its argument."""
        told = script.encode("utf-8", "surrogateescape")
        refuse_long(told)
        return ("sh", "-c", told)

    def complaint(self, errors: str) -> str:
        """There is no link to lose: the shell itself was ended."""
        told = f" ({last_line(errors)})" if errors.strip() else ""
        return f"the shell was ended from outside{told}; run it again"

    def seconds_for(self, size_bytes: int) -> float:
        """No time that is worth a word."""
        return 0.0

    def close(self) -> None:
        """Nothing is shared."""
