"""What a reader refuses by a rule of its own: the reader, a place of a file that it accepts, what is there, the words.

What the type of a field says is `perfsuite.records.codec`'s, which has its own tests, and is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.measure.plan import SCHEMA as PLAN_SCHEMA

#: The place is left out.
ABSENT = object()

_OPERATORS = ("timelines", 0, "operators", 0)
_COMPOSITION = ("compositions", 0)
_ROW = ("rows", 0)
_PART = (*_ROW, "work", "parts", 0)
_CEILING = ("ceilings", 0)
_RATE = ("rates", 0)
_OWN_VERSION = "use one version on both sides"

#: A value that is called makes it of what is there.
REFUSALS: Sequence[tuple[str, tuple[str | int, ...], Any, str]] = (
    ("observation", (*_OPERATORS, 0), 99, "timelines[0]: an operator has a name beyond the "),
    ("observation", _OPERATORS, [0, 0], "timelines[0].operators[0] has 2 values, expected 4"),
    ("observation", ("works",), lambda works: works * 2, "is there twice; run again"),
    ("calibration", (*_COMPOSITION, "counts"), [1], "expected a count and 3 times for each of 2 shapes"),
    ("calibration", (*_COMPOSITION, "rest_ns", 0), -1.0, "rest_ns[0] is -1.0, expected a finite number of 0 or more"),
    ("ceilings", ("bandwidths",), lambda levels: levels[::-1], "are not ascending; measure again"),
    ("roofline", (*_ROW, "work", "parts"), [], "has no FLOPs or moves no bytes; measure again"),
    ("roofline", (*_PART, "stored_bytes"), 0, "work.parts[0]: stored_bytes is 0, expected from least to most"),
    ("roofline", (*_ROW, "subject", "n_threads"), 3, "ceilings of cpu with 3 threads"),
    ("roofline", ("ceilings", -3, "kind"), "read", "kind is 'read', expected one of fp32, f16, int8 of compute"),
    ("roofline", ("ceilings", -3, "working_set_bytes"), 5, "working_set_bytes is 5, expected a whole number above 0"),
    ("roofline", (*_CEILING, "rate"), None, "missing is '', expected a reason where there is no rate, and only there"),
    ("roofline", (*_CEILING, "rate", "median_per_s"), 1e18, "expected at most the best"),
    ("roofline-published", ("devices",), lambda devices: devices * 2, "expected names that differ"),
    ("roofline-published", (*_RATE, "latency_ns"), None, "tokens_per_s is None, expected either it or latency_ns"),
    ("memory", ("samples", 0), [1, 2, 3, -4], "a row is [1, 2, 3, -4], expected at_ns"),
    ("counts", ("rows",), lambda rows: rows * 2, "is there twice; count again with --baseline=record"),
    ("worker-record", ("schema",), 0, f"record has schema 0, this suite reads {PLAN_SCHEMA}; {_OWN_VERSION}"),
    ("worker-record", ("suite_version",), "0.0", "made by perfsuite 0.0, this is "),
    ("worker-record", ("task",), "probes", "is of task 'probes', the plan was for 'llama'"),
    ("worker-plan", ("schema",), 0, f"plan has schema 0, this suite reads {PLAN_SCHEMA}; {_OWN_VERSION}"),
    ("llama-bench", (1, "n_gen"), ABSENT, "test 2: n_gen is missing"),
    ("llama-bench", (0, "n_gen"), -1, "n_gen is -1, expected a whole number from 0"),
    ("llama-bench", (0, "n_prompt"), 2**32 - 1, "expected a whole number from 0 to 2147483647 tokens"),
    ("llama-bench", (0, "samples_ns"), [1, 0], "samples_ns[1] is 0, expected a whole number of 1 or more"),
    ("llama-bench", (0, "n_prompt"), 0, "n_prompt and n_gen are 0"),
    ("llama-bench", (0, "something_new"), 10**400, "something_new is "),
)
