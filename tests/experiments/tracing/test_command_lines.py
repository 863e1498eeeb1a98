"""A trace in a few lines."""

from __future__ import annotations

from perfsuite.experiments.tracing.command_lines import summarize_trace, summary_lines
from perfsuite.records.engine_trace import EventFlag, EventKind
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import engine_trace, event, small_trace


def _told(**fields: object) -> str:
    return "\n".join(summary_lines(summarize_trace(small_trace(3, **fields))))


def test_the_speed_of_decoding_and_changes_of_levels_are_told() -> None:
    """It is the median of the calls for one token; a reader knows why operators are missing from a moment on."""
    tokens = [event(EventKind.TOKEN, at * 100_000_000, at * 100_000_000 + 50_000_000, value=1) for at in range(3)]
    prompt = event(EventKind.TOKEN, 400_000_000, 900_000_000, value=64)
    cut = event(EventKind.TOKEN, 900_000_000, 999_000_000, value=1, flags=EventFlag.CUT)
    summary = summarize_trace(engine_trace([*tokens, prompt, cut]))
    assert (summary.decode_step_ns, summary.n_decode_steps) == (50_000_000, 3)
    assert "decode: 50.0 ms a token, 20.0 tokens/s (median of 3 steps)" in "\n".join(summary_lines(summary))
    begin = event(EventKind.TOKEN, 0, 10_000_000, value=1)
    switch = event(EventKind.LEVELS, 30_000_000, 30_000_000, value=int(TraceLevel.TOKEN))
    summary = summarize_trace(engine_trace([begin, switch]))
    assert "levels: token from 30.0 ms on" in "\n".join(summary_lines(summary))


def test_what_makes_a_trace_doubtful_is_told() -> None:
    """Lost events, a cut, and any other problem have a line each; an empty trace has one too."""
    told = _told(n_lost=7, cut="killed at byte 9", problems=("a clock jumped",))
    assert "lost: 7 events found no room" in told
    assert "cut: killed at byte 9" in told
    assert "doubtful: a clock jumped" in told
    assert "lost" not in _told()
    summary = summarize_trace(engine_trace([]))
    assert next(iter(summary_lines(summary))).startswith("process ")
    assert "no event" in "\n".join(summary_lines(summary))
    assert summary.n_by_kind == {}
