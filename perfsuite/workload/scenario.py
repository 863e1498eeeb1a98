"""Scenarios: how many tokens a run is given and how many it generates."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError, meant


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One request: a prompt of ``n_prompt`` tokens after ``n_depth`` in the cache, then ``n_gen`` generated."""

    name: str
    n_prompt: int
    n_gen: int
    n_depth: int = 0
    #: Where the lengths come from.
    source: str

    def __post_init__(self) -> None:
        for field in ("n_prompt", "n_gen", "n_depth"):
            value = getattr(self, field)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise PerfsuiteError(f"scenario {self.name!r}: {field} is {value!r}, expected an integer of 0 or more")
        if self.n_prompt + self.n_gen == 0:
            raise PerfsuiteError(f"scenario {self.name!r}: neither prompt nor generation, expected at least one token")

    @property
    def n_ctx(self) -> int:
        return self.n_depth + self.n_prompt + self.n_gen


_CLASSES = "RooflineBench's four classes of short and long input and output"
_SHORT_SOURCE = f"{_CLASSES}; lengths scaled down to run in seconds"
_LONG_SOURCE = (
    f"{_CLASSES}; the paper gives no lengths: short ones are llama-bench's default of 128 tokens (the authors' scripts "
    "class prompts of up to 200 as short), long ones 16 and 8 times as many"
)
_SHORT = (("siso", 64, 24), ("liso", 512, 24), ("silo", 64, 128), ("lilo", 512, 128))
_LONG = (("siso-long", 128, 128), ("liso-long", 2048, 128), ("silo-long", 128, 1024), ("lilo-long", 2048, 1024))


_SCENARIOS = {
    name: Scenario(name=name, n_prompt=n_prompt, n_gen=n_gen, source=source)
    for lengths, source in ((_SHORT, _SHORT_SOURCE), (_LONG, _LONG_SOURCE))
    for name, n_prompt, n_gen in lengths
}

#: The most tokens of a prompt, of a generation, or before them.
MOST_TOKENS = 9_999_999

_AD_HOC = re.compile(r"p(?P<n_prompt>\d{1,7})-g(?P<n_gen>\d{1,7})(?:-d(?P<n_depth>\d{1,7}))?")


def scenario_names() -> tuple[str, ...]:
    """List the named scenarios, the default first."""
    return tuple(_SCENARIOS)


def find_scenario(name: str) -> Scenario:
    """Return a scenario: one of the named, or ``p<prompt>-g<generated>[-d<depth>]`` such as ``p128-g16``.

    Anything else raises PerfsuiteError with what is accepted.
    """
    named = _SCENARIOS.get(name)
    if named is not None:
        return named
    lengths = _AD_HOC.fullmatch(name)
    if lengths is None:
        accepted = f"{', '.join(_SCENARIOS)} and lengths such as p128-g16"
        raise PerfsuiteError(f"scenario {name!r} is unknown; accepted are {accepted}{meant(name, _SCENARIOS)}")
    n_prompt, n_gen, n_depth = (int(text or 0) for text in lengths.group("n_prompt", "n_gen", "n_depth"))
    return Scenario(name=name, n_prompt=n_prompt, n_gen=n_gen, n_depth=n_depth, source="given by its lengths")
