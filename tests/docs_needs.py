"""What a command of the documentation needs beyond a checkout and some seconds, told from the command itself.

The comment above a fence (``<!-- needs: minutes, root -->``) says the same to who writes the page; a test holds the
two against each other, so that no command escapes being run by a comment that it does not need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .docs_words import is_assignment, words

#: What a command may need, and what that means.
NEEDS = {
    "minutes": "takes longer than a test may, or asks for a machine on which nothing else runs",
    "opencl": "OpenCL's headers and loader, or llama.cpp's OpenCL backend ('make opencl' makes it)",
    "ebpf": "eBPF: root, or the helper that root installs",
    "root": "root",
    "board": "a device behind ssh or adb",
    "server": "a program that runs at the same time",
    "network": "the network",
    "files": "files of the reader's own, or of a command above it that was not run",
}

_PYTEST = r"(pytest|python -m pytest)\b(?=.*--device[ =](host|counted))"
_QUICK = r"(?=.*--scenario[ =]p\d+-g\d+)(?=.*(--perf-replicates[ =][1-5]\b|--perf-budget))(?=.*-k)"

#: By need: a command line that one of these matches has it.
_RULES = {
    "minutes": (
        r"\bmake (?!help)\w",
        rf"{_PYTEST}(?!{_QUICK})",
        r"perfsuite (calibrate|held-out|certify|overhead|live|policy|offload|kernels|compare|bisect)\b",
        r"perfsuite fidelity\b(?!.*--published)",
        r"perfsuite roofline\b(?!.*--published)(?!.*--from)",
        r"perfsuite sweep\b(?!.*--expected-only)",
        r"perfsuite study\b(?=.*plan\.toml)(?!.*--dry-run)",
        r"perfsuite nightly\b(?!.*--dry-run)",
        r"perfsuite (forecast|reproduce)\b(?=.*--device)",
        r"--model (qwen1\.5-moe|llama-3\.2)",
        r"\btools/\w+\.sh",
        r"\btools/(compare_llama_bench|shape_hunts|time_\w+)\.py",
        r"\bdocs_commands\.py(?!.*--list)",
        r"\.ci/run",
    ),
    "opencl": (r"(?<!perf-)opencl(?!-platform)", r"perfsuite (offload|kernels)\b"),
    "ebpf": (
        r"perfsuite trace (--pid|agree|check|-- )",
        r"perfsuite trace\b(?=.*--trace )",
        r"--recorder[ =]ebpf",
    ),
    "root": (r"\bsudo ",),
    "board": (
        r"perfsuite devices (setup|probe|doctor|unlock)\b(?!.* host\b)(?!.*--address[ =]local\b)",
        r"\b(pytest|perfsuite calibrate)\b.*--device[ =](?!(host|counted)\b)",
        r"perfsuite (bundle\b.*--plan|ingest)\b",
    ),
    "server": (r"--pid", r"^labgrid-client ", r"[^&]&$", r"perfsuite live --socket", r"127\.0\.0\.1|localhost"),
    "network": (r"\bgit (clone|push|fetch|pull)", r"\b(pip|apt|apt-get|npm|gh|docker) ", r"\bcurl (?!.*127\.0\.0\.1)"),
}

#: What stands for something of the reader's own.
_PLACEHOLDER = re.compile(r"path/to/|~/\w|<\w|\b(RUN|CPU|DEVICE|FILE)\b")

#: Files that have to be there before they can be read.
_FILE = re.compile(r"[\w./-]+\.(gguf|jsonl?|toml|txt|py|csv|sql|sqlite|pstrace|pftrace|xml|md|sh)")

#: What commands leave or look for without naming a file.
_BASELINES = "stored baselines"
_RECORDS = re.compile(r"--baseline=record|perfsuite baseline (record|approve)")
_LOOKS_UP = re.compile(r"perfsuite baseline (show|diff|anchor|prune)")

#: Options whose value is written, and not read.
_OUTPUTS = ("-o", "--output", "--plot", "--csv", "--json", "--perf-dir", "--junitxml", "--benchmark-json", ">", ">>")


@dataclass(slots=True)
class Shelf:
    """The files that commands of a page can count on, as one after the other is looked at."""

    #: Paths as commands name them.
    there: set[str] = field(default_factory=set)
    #: What a command writes, or a variable that it sets, that is not run.
    missing: set[str] = field(default_factory=set)

    def needs(self, text: str) -> frozenset[str]:
        """Return what a command needs, and note what it leaves for those after it."""
        told = words(text)
        line = " ".join(told)
        written = set(_written(told))
        found = {need for need, rules in _RULES.items() if any(re.search(rule, line) for rule in rules)}
        if _RECORDS.search(line):
            written.add(_BASELINES)
        if _PLACEHOLDER.search(line) or any(self._lacks(word) for word in told if _value(word) not in written):
            found.add("files")
        if _LOOKS_UP.search(line) and _BASELINES not in self.there:
            found.add("files")
        (self.missing if found else self.there).update(written)
        return frozenset(found)

    def _lacks(self, word: str) -> bool:
        value = _value(word)
        if value in self.missing:
            return True
        return bool(_FILE.fullmatch(value)) and not any(part in self.there for part in (value, value.split("/")[0]))


def _value(word: str) -> str:
    return word.split("=", 1)[-1]


def _written(told: list[str]) -> Iterator[str]:
    for word, value in zip(told, [*told[1:], ""], strict=True):
        name, joined = word.partition("=")[::2]
        if is_assignment(word):
            yield f"${name}"
        elif name in _OUTPUTS and joined:
            yield joined
        elif word in _OUTPUTS and value and not value.startswith(("-", ">")):
            yield value
