"""A statement about a roofline: whether it holds, with the figures that say so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is claimed of measured points."""

    name: str
    #: Who claims it, or why it must hold.
    claim: str
    #: None where the run lacks the points that would show it, or they lie within their spread.
    holds: bool | None
    #: The figures.
    evidence: str
