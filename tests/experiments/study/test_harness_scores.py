"""Results files of lm-evaluation-harness."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.harness_scores import HarnessScore, read_harness_score, read_scores
from perfsuite.experiments.study.plan_file import StudyPlan
from tests.experiments.study.conftest import NUMBERS, REFERENCE, accuracies


def test_each_run_has_its_score_in_each_task(plan: StudyPlan) -> None:
    (of_task,) = read_scores(plan)
    assert {name: score.accuracy for name, score in of_task.of_runs.items()} == {
        name: numbers[0] for name, numbers in NUMBERS.items()
    }
    assert of_task.reference == REFERENCE


def test_another_metric_of_the_same_name_is_refused(plan: StudyPlan, tmp_path: Path) -> None:
    accuracies(tmp_path, "ref", REFERENCE, metric="acc")
    read_scores(plan)
    accuracies(tmp_path, "ref", REFERENCE, metric="acc,strict-match")
    with pytest.raises(PerfsuiteError, match="metric is acc,none of small f16, acc,strict-match of ref"):
        read_scores(plan)


#: The shape of release 0.4 with made-up numbers.
NEW = {
    "results": {
        "arc_easy": {
            "alias": "arc_easy",
            "sample_len": 2376,
            "acc,none": 0.5,
            "acc_stderr,none": 0.01,
            "acc_norm,none": 0.44,
            "acc_norm_stderr,none": 0.02,
        },
        "gsm8k": {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.1,
            "exact_match_stderr,strict-match": "N/A",
            "exact_match,flexible-extract": 0.12,
            "exact_match_stderr,flexible-extract": 0.009,
        },
        "wikitext": {"word_perplexity,none": 23.5, "alias": "wikitext"},
    },
    "versions": {"arc_easy": 1.0},
}
#: The shape of release 0.3.
OLD = {"results": {"arc_easy": {"acc": 0.5, "acc_stderr": 0.01, "acc_norm": 0.44, "acc_norm_stderr": 0.02}}}


def written(folder: Path, plain: Any, name: str = "results.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(plain))
    return path


@pytest.mark.parametrize(
    ("plain", "metric", "found"),
    [
        (NEW, "acc_norm", "acc_norm,none"),
        (OLD, "acc_norm,none", "acc_norm"),
    ],
)
def test_a_metric_is_found_in_files_of_either_release(plain: Any, metric: str, found: str, tmp_path: Path) -> None:
    score = read_harness_score([written(tmp_path, plain)], "arc_easy", metric)
    assert score == HarnessScore(metric=found, accuracy=0.44, stderr=0.02)


def test_a_standard_error_may_be_missing(tmp_path: Path) -> None:
    """N/A is not known, nor is the NaN that the harness writes where it cannot compute one."""
    score = read_harness_score([written(tmp_path, NEW)], "gsm8k", "exact_match,strict-match")
    assert (score.accuracy, score.stderr) == (0.1, None)
    path = written(tmp_path, {"results": {"piqa": {"acc,none": 1, "acc_stderr,none": math.nan}}})
    unknown = HarnessScore(metric="acc,none", accuracy=1.0, stderr=None)
    assert read_harness_score([path], "piqa", "acc") == unknown


@pytest.mark.parametrize("value", [10**400, -0.1])
@pytest.mark.parametrize("name", ["acc,none", "acc_stderr,none"])
def test_what_is_no_share_is_refused(name: str, value: float, tmp_path: Path) -> None:
    """Accuracies and standard errors lie between 0 and 1, however large a whole number may be."""
    path = written(tmp_path, {"results": {"piqa": {"acc,none": 0.5, "acc_stderr,none": 0.1, name: value}}})
    with pytest.raises(PerfsuiteError, match=f"task 'piqa': {name} is .{{1,40}}, expected a share of 0 to 1"):
        read_harness_score([path], "piqa", "acc")


def test_tasks_may_lie_in_several_files(tmp_path: Path) -> None:
    other = written(tmp_path, {"results": {"piqa": {"acc,none": 0.6}}}, "b.json")
    paths = [written(tmp_path, NEW, "a.json"), other]
    assert read_harness_score(paths, "piqa", "acc").accuracy == 0.6
    with pytest.raises(PerfsuiteError, match=r"a\.json, .*c\.json: task 'arc_easy' is in 2 of the files"):
        read_harness_score([*paths, written(tmp_path, OLD, "c.json")], "arc_easy", "acc")


@pytest.mark.parametrize(
    ("task", "metric", "message"),
    [
        ("hellaswag", "acc", "task 'hellaswag' is not there; tasks are arc_easy, gsm8k, wikitext"),
        ("arc_easy", "acc_stderr", "metric 'acc_stderr' is not there"),
        ("gsm8k", "exact_match", "metric 'exact_match' has the filters of exact_match,strict-match, exact_match,flex"),
        ("wikitext", "word_perplexity", "word_perplexity,none is 23.5, expected a share of 0 to 1"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(task: str, metric: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, NEW)
    with pytest.raises(PerfsuiteError, match=f"^{re.escape(str(path))}: .*{re.escape(message)}"):
        read_harness_score([path], task, metric)
