"""``perfsuite trace check``: whether the eBPF recorder works here, and otherwise the one thing that is missing."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import add_command, add_json
from perfsuite.cli.kept_folders import user_cache
from perfsuite.measure.counters import known_counters, usual_counters
from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper


def run(arguments: Sequence[str]) -> int:
    """Say what is missing, with the exit code 1, or which helper is used."""
    options, cache_dir = _parser().parse_args(arguments), user_cache()
    obstacle = ebpf_obstacle(cache_dir)
    helper = None if obstacle else str(find_helper(cache_dir))
    counters = {
        each.name: {"meaning": each.meaning, "is_usual": each.name in usual_counters()} for each in known_counters()
    }
    plain = {"problem": obstacle, "helper": helper, "counters": counters}
    give(Answer(parts=lambda: _parts(obstacle, helper), plain=lambda: plain), options)
    return 1 if obstacle else 0


def _parts(obstacle: str | None, helper: str | None) -> Iterator[str]:
    if obstacle:
        yield f"eBPF cannot be used: {obstacle}"
        return
    yield f"eBPF can be used, by {helper}"
    yield "counters, where the machine has them:"
    for counter in known_counters():
        is_usual = "  (unless others are asked for)" if counter.name in usual_counters() else ""
        yield f"  {counter.name:24s} {counter.meaning}{is_usual}"


def _parser() -> argparse.ArgumentParser:
    parser = add_command(
        None,
        "perfsuite trace check",
        summary="say whether eBPF works here, or what is missing",
        about="Also lists the hardware counters.",
        examples={"perfsuite trace check": "on this machine"},
        exits={1: "something is missing"},
        see=("docs/tracing.md",),
    )
    add_json(parser)
    return parser
