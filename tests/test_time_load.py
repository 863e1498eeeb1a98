"""What a process holds while it starts workers by the hundred, with the tool that does so by the thousand."""

from __future__ import annotations

from tests.loaded_tool import loaded_tool

#: Allocators give memory back late: a leak of a record or a buffer at each start would be more.
_MOST_GROWTH_KB = 1024


def test_two_hundred_starts_leave_nothing_behind() -> None:
    """Files, threads, children and folders are as many as before, and memory as much as after the first hundred."""
    counted = loaded_tool("time_load").count_starts(200, 2)
    before, middle, end = counted["looks"]
    held = ("n_files", "n_threads", "n_children")
    assert (counted["answers"], counted["fails"]) == (180, 20)
    assert [end[name] for name in held] == [before[name] for name in held]
    assert (middle["n_left"], end["n_left"]) == (1, 1)  # the stand-in's answer
    assert end["rss_kb"] - middle["rss_kb"] < _MOST_GROWTH_KB
