"""The change that passes, from all of its sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, find_profile
from perfsuite.experiments.run_config import KindMargins, Margins
from perfsuite.plugin.values import parse_margins
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.001", "--perf-step-share=0")

TEN = KindMargins(any_ratio=0.10)
OWN = """
    import pytest

    {mark}
    def test_own(perf):
        perf.check("function/own", [1000, 1001, 1002])
"""


def _margins(runs: HostRuns) -> dict[str, str]:
    cases = runs.plain()["cases"]
    return {case["id"]: f"{ratio * 100:g}" if (ratio := case["margin_ratio"]) else "" for case in cases}


def _own_margin(runs: HostRuns, *arguments: str, mark: str = "") -> str:
    """Record a test of your own, run it again under a marker, and return the margin that it was judged by."""
    path = runs.pytester.makepyfile(test_own=OWN.format(mark=""))
    runs(str(path), "--baseline=record")
    path = runs.pytester.makepyfile(test_own=OWN.format(mark=mark))
    assert runs(str(path), *arguments).ret == 0
    return _margins(runs)["function/own"]


@pytest.mark.parametrize(
    ("text", "any_ratio", "by_kind_ratio"),
    [
        ("0.03", 0.03, {}),
        ("phase=0.02,operator=0.1", None, {"phase": 0.02, "operator": 0.1}),
        ("0.05, phase=0.02", 0.05, {"phase": 0.02}),
        ("", None, {}),
        (None, None, {}),
    ],
)
def test_margins_are_read(text: str | None, any_ratio: float | None, by_kind_ratio: dict[str, float]) -> None:
    """A ratio holds for all kinds, a named one for its own; nothing written is nothing said."""
    read = parse_margins("--perf-margin=", text)
    assert (read.any_ratio, dict(read.by_kind_ratio)) == (any_ratio, by_kind_ratio)


RATIO, TWICE = ".*expected a ratio between 0 and 1", ".*is there twice"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, RATIO) for text in ("wide", "0", "1", "nan", "phase=", "=0.1", "phase=0.1=0.2", "0.1,,", "a b=0.1")),
        *((text, TWICE) for text in ("0.1,0.2", "phase=0.1,phase=0.2")),
    ],
)
def test_what_is_no_margin_is_refused(text: str, told: str) -> None:
    with pytest.raises(pytest.UsageError, match=rf"^--perf-margin={text}: {told}"):
        parse_margins("--perf-margin=", text)


@pytest.mark.parametrize(
    ("margins", "marker", "expected"),
    [
        (Margins(command_line=TEN, ini=KindMargins(any_ratio=0.2)), 0.3, 0.10),
        (Margins(ini=KindMargins(any_ratio=0.2)), 0.3, 0.3),
        (Margins(ini=TEN, profile=KindMargins(by_kind_ratio={"phase": 0.2})), None, 0.10),
        (Margins(profile=KindMargins(by_kind_ratio={"phase": 0.2})), None, 0.2),
        (Margins(profile=KindMargins(by_kind_ratio={"kernel": 0.2})), None, DEFAULT_MARGIN_RATIO),
        (Margins(command_line=KindMargins(by_kind_ratio={"operator": 0.2})), 0.3, 0.3),
        (Margins(command_line=KindMargins(any_ratio=0.1, by_kind_ratio={"phase": 0.02})), None, 0.02),
    ],
)
def test_the_most_specific_source_wins(margins: Margins, marker: float | None, expected: float) -> None:
    """Command line, marker, ini, profile, default; a source that is silent on a kind leaves it to the next."""
    assert margins.margin_ratio("phase", marker) == expected


def test_the_command_line_sets_margins_by_kind(runs: HostRuns) -> None:
    """Bare and named entries may be combined; each case is judged by the margin of its kind."""
    runs("--baseline=record", "-k", "decode")
    runs("-k", "decode", "--perf-margin=0.3,phase=0.2")
    assert set(_margins(runs).values()) == {"20", "30"}
    assert _margins(runs)["phase/smollm2-135m-l2-q8_0/siso/decode"] == "20"


def test_without_a_word_the_profile_of_the_device_holds(runs: HostRuns) -> None:
    """The host's profile asks more of a phase than of an operator, and an ini file goes before it."""
    runs("--baseline=record", "-k", "decode")
    runs("-k", "decode")
    by_kind = {case_id.partition("/")[0]: margin for case_id, margin in _margins(runs).items()}
    assert by_kind == {kind: f"{ratio * 100:g}" for kind, ratio in find_profile("host").margin_ratio.items()}
    runs("-k", "decode", "-o", "perf_margin=0.07")
    assert set(_margins(runs).values()) == {"7"}


@pytest.mark.parametrize(
    ("mark", "arguments", "margin"),
    [
        ("", [], "5"),
        ("@pytest.mark.perf(margin=0.03)", ["-o", "perf_margin=0.07"], "3"),
        ("@pytest.mark.perf(margin=0.03)", ["--perf-margin=function=0.2"], "20"),
        ("@pytest.mark.perf", ["-o", "perf_margin=0.07"], "7"),
        ("@pytest.mark.perf()\n    @pytest.mark.perf(margin=0.04)", [], "4"),
    ],
)
def test_a_marker_goes_before_the_ini_file(runs: HostRuns, mark: str, arguments: list[str], margin: str) -> None:
    """A test's own margin overrides the ini file, and the command line overrides it."""
    assert _own_margin(runs, *arguments, mark=mark) == margin


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        ("perf(0.03)", "*test_own.py::test_own: @pytest.mark.perf: 0.03 is not known; expected perf(margin=0.05)"),
        ("perf(spread=1)", "*test_own.py::test_own: @pytest.mark.perf: spread is not known; *"),
        ("perf(margin=True)", "*::test_own: @pytest.mark.perf(margin=True): expected a ratio *"),
        ("perf(margin=5)", "*::test_own: @pytest.mark.perf(margin=5): expected a ratio between 0 and 1*"),
    ],
)
def test_a_wrong_marker_names_its_test(runs: HostRuns, mark: str, line: str) -> None:
    path: Path = runs.pytester.makepyfile(test_own=OWN.format(mark=f"@pytest.mark.{mark}"))
    result = runs(str(path))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_the_marker_is_registered(pytester: pytest.Pytester) -> None:
    """Without a device, too, strict markers accept it and --markers explains it."""
    path = pytester.makepyfile(test_own=OWN.format(mark="@pytest.mark.perf(margin=0.03)"))
    result = pytester.runpytest_inprocess(str(path), "--strict-markers", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*need --device=NAME*"])
    pytester.runpytest_inprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.perf(margin): change that *"])


def test_a_kind_that_no_case_has_is_told(runs: HostRuns) -> None:
    """A misspelt kind changes nothing, and does not do so silently; one that was only left out is fine."""
    result = runs("-k", "test_phase", "--perf-margin=phse=0.1,operator=0.1")
    result.stdout.fnmatch_lines(
        ["  --perf-margin: no case is of the kind 'phse'; there are phase, operator, binding, percentile, kernel,*"]
    )
    result.stdout.no_fnmatch_line("*of the kind 'operator'*")
