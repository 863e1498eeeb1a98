"""``perfsuite trace check``: whether the eBPF recorder works here, and otherwise the one thing that is missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from perfsuite.cli.command_help import word_parser
from perfsuite.cli.kept_folders import user_cache
from perfsuite.measure.counters import known_counters, usual_counters
from perfsuite.measure.ebpf_helper import ebpf_obstacle, find_helper


def run(arguments: Sequence[str]) -> int:
    """Say what is missing, with the exit code 1, or which helper is used."""
    _parser().parse_args(arguments)
    cache_dir = user_cache()
    if obstacle := ebpf_obstacle(cache_dir):
        print(f"eBPF cannot be used: {obstacle}")
        return 1
    print(f"eBPF can be used, by {find_helper(cache_dir)}")
    print("counters, where the machine has them:")
    for counter in known_counters():
        is_usual = "  (unless others are asked for)" if counter.name in usual_counters() else ""
        print(f"  {counter.name:24s} {counter.meaning}{is_usual}")
    return 0


def _parser() -> argparse.ArgumentParser:
    return word_parser(
        "perfsuite trace check",
        summary="say whether eBPF works here, or what is missing",
        about="Also lists the hardware counters.",
        examples={"perfsuite trace check": "on this machine"},
        exits={1: "something is missing"},
    )
