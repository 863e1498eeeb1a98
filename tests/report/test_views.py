"""What people and programs read of one run, as each view shows it whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape

import pytest

from perfsuite import __version__
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import BoardName
from perfsuite.report.exports.csv import csv_text
from perfsuite.report.exports.github_annotations import annotations_text
from perfsuite.report.exports.junit import junit_text
from perfsuite.report.exports.markdown import comment_text, page
from perfsuite.report.exports.openmetrics import openmetrics_text
from perfsuite.report.exports.pytest_benchmark import pytest_benchmark_text
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.page.render import render_page
from perfsuite.report.summary_table import summary_text
from perfsuite.report.terminal import next_step
from perfsuite.testing.run_files import synthetic_observation, synthetic_run
from tests.conftest import Golden

from .page.conftest import page_run


def _few(run: RunFile) -> RunFile:
    """All phases of a run, and of each other kind one case of each outcome."""
    kept = {(each.kind, each.outcome): each for each in reversed(run.judgements)}.values()
    return replace(
        run,
        judgements=tuple(each for each in run.judgements if each.kind == "phase" or any(each is one for one in kept)),
    )


def _only(run: RunFile, *kinds: str) -> RunFile:
    return replace(run, judgements=tuple(each for each in run.judgements if each.kind in kinds))


def _named(run: RunFile, *ends: str) -> RunFile:
    return replace(run, judgements=tuple(each for each in run.judgements if each.case_id.endswith(ends)))


_WHOLE = synthetic_run(n_cases=500)
_BOARD = BoardName(identity="0123456789abcdef", hostname="shelf", is_linked=True)

#: In pairs, with every outcome, on a board with an energy and a remark.
PAIRED = replace(
    _few(_WHOLE),
    origin=replace(_WHOLE.origin, board=_BOARD),
    joules_per_token={"prefill": None, "decode": 0.8213},
    device_notes=("governor 'performance' cannot be set",),
)
#: Against a stored baseline.
STORED = _few(synthetic_run(n_cases=60, against=None, n_regressed=1))
NEW = replace(
    STORED,
    judgements=tuple(
        replace(each, outcome=Outcome.NEW, baseline_ns=None, change_ratio=None, reason="no baseline yet")
        for each in STORED.judgements[:3]
    ),
)
#: All phases and the findings of a trace; and of them one case with times and one without.
SHORT = _only(PAIRED, "phase", "trace")
FEW = _named(SHORT, "siso/decode", "attn_norm")


def terminal(run: RunFile, width: int | None) -> str:
    """The last screen of a run."""
    told = next_step(run.judgements, "run.json", run.attribution, origin=run.origin, report_path="report.html")
    return f"{summary_text(run.judgements, width=width, is_color=False)}\n" + "\n".join(told) + "\n"


def page_text(*runs: PageRun, has_details: bool = True) -> str:
    """What is read of a page, a line for each block, with the words of its pictures, or without what rows open to."""
    html = render_page(runs)
    if not has_details:
        html = re.sub(r'<tr class="more">.*?(?=<tbody id|</table>\n</div>\n<[^/])', "", html, flags=re.DOTALL)
    html = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    html = re.sub(r'<svg\b[^>]*?aria-label="([^"]*)".*?</svg>', r"[\1]", html, flags=re.DOTALL)
    html = re.sub(r"<svg\b.*?</svg>", "", html, flags=re.DOTALL)
    html = re.sub(r"(?:</dt>)?\s*<dd\b[^>]*>", ": ", re.sub(r"\s+", " ", html))
    html = re.sub(r"<(?:td|th|span|text)\b[^>]*>", " ", html)
    html = re.sub(r"</?(?:i|b|a|bdi|wbr|span|strong|em|code|abbr|td|th|button|text)\b[^>]*>", "", html)
    lines = (" ".join(line.split()) for line in unescape(re.sub(r"<[^>]*>", "\n", html)).splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def benchmark(run: RunFile) -> str:
    """The export for pytest-benchmark, with a line for each figure."""
    return json.dumps(json.loads(pytest_benchmark_text(run)), indent=1) + "\n"


def _briefly(run: RunFile) -> PageRun:
    """A run with what it saw of three steps and around three replicates: one left out, and one throttled."""
    seen = synthetic_observation(run)
    seen = replace(seen, tokens=seen.tokens[:3], states=seen.states[4::8])
    return page_run(replace(run, sentinels_ns={"llama": {"memory": (880_000, 871_000, 902_000)}}), seen)


_PAGE_CASES = ("siso/prefill", "prefill/ffn_swiglu", "cache_k", "balance/prefill/ffn_gate")
_STORED_CASES = (
    *("siso/prefill", "flash_attn_ext", "prefill/ffn_gate", "prefill/l_out", "prefill/result_output"),
    *("decode/Kcur", "decode/ffn_gate", "encode/tokens64"),
)
_SHOWN = replace(_named(STORED, *_STORED_CASES), sentinels_ns={}, covariates={}, ceilings=None)

VIEWS: dict[str, Callable[[], str]] = {
    "terminal-pairs.txt": lambda: terminal(PAIRED, 120),
    "terminal-stored.txt": lambda: terminal(STORED, 80),
    "terminal-new.txt": lambda: terminal(NEW, None),
    "page.txt": lambda: page_text(_briefly(_named(PAIRED, *_PAGE_CASES))),
    "page-stored.txt": lambda: page_text(page_run(_SHOWN), page_run(replace(SHORT, device="board")), has_details=False),
    "markdown.txt": lambda: page([PAIRED], limit=10**6),
    "comment.txt": lambda: comment_text([STORED, NEW]),
    "annotations.txt": lambda: annotations_text([PAIRED]),
    "junit.xml": lambda: junit_text([SHORT]),
    "runs.csv": lambda: csv_text([SHORT]).replace("\r\n", "\n"),
    "run.prom": lambda: openmetrics_text([SHORT]),
    "benchmark.json": lambda: benchmark(FEW),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_run_is_shown_as_before(name: str, golden: Golden) -> None:
    golden(f"report/{name}", VIEWS[name]().replace(__version__, "VERSION"))
