"""``observation.json``: written, read again, and refused where it is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import (
    NO_OBSERVATION,
    CaseWork,
    MachineState,
    Observation,
    OperatorSpan,
    PhaseGraph,
    PhaseTimeline,
    RoleEdge,
    RoleNode,
    TokenLatency,
    plain_observation,
    read_observation,
    write_observation,
)

from ..json_places import places, with_value

_TIMES_NS = st.integers(min_value=0, max_value=2**62)
_WORDS = st.text(max_size=20)
_KNOWN = st.none() | st.floats(0.0, 1e12)
_COUNTS = st.integers(0, 9999)


def _some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


_SPANS = st.builds(
    OperatorSpan, role=_WORDS, op=_WORDS, layer=st.none() | _COUNTS, start_ns=_TIMES_NS, duration_ns=_TIMES_NS
)
_OBSERVATIONS = st.builds(
    Observation,
    tokens=_some(st.builds(TokenLatency, n_context=_COUNTS, samples_ns=_some(_TIMES_NS))),
    timelines=_some(
        st.builds(PhaseTimeline, phase=_WORDS, n_tokens=_COUNTS, duration_ns=_TIMES_NS, operators=_some(_SPANS))
    ),
    graphs=_some(
        st.builds(
            PhaseGraph,
            phase=_WORDS,
            nodes=_some(st.builds(RoleNode, role=_WORDS, op=_WORDS, n_operators=_COUNTS, time_ns=_TIMES_NS)),
            edges=_some(st.builds(RoleEdge, source=_WORDS, target=_WORDS)),
        )
    ),
    works=st.lists(
        st.builds(CaseWork, case_id=_WORDS, flops=_COUNTS, moved_bytes=_COUNTS),
        max_size=3,
        unique_by=lambda work: work.case_id,
    ).map(tuple),
    states=_some(
        st.builds(
            MachineState,
            group=_WORDS,
            at_s=st.floats(0.0, 1e6),
            is_valid=st.booleans(),
            load_average=_KNOWN,
            cpu_mhz=_KNOWN,
            temperature_celsius=st.none() | st.floats(-60.0, 200.0),
            waiting_ratio=_KNOWN,
            steal_ratio=_KNOWN,
            throttled=st.none() | st.booleans(),
            battery_ratio=_KNOWN,
            power_watts=_KNOWN,
            least_cpu_mhz=_KNOWN,
            most_cpu_mhz=_KNOWN,
            most_celsius=st.none() | st.floats(-60.0, 200.0),
        )
    ),
)

_FULL = Observation(
    tokens=(TokenLatency(n_context=1, samples_ns=(2, 3)),),
    timelines=(
        PhaseTimeline(
            phase="decode",
            n_tokens=1,
            duration_ns=9,
            operators=(
                OperatorSpan(role="embd", op="GET_ROWS", layer=None, start_ns=0, duration_ns=1),
                OperatorSpan(role="Qcur", op="MUL_MAT", layer=0, start_ns=1, duration_ns=2),
                OperatorSpan(role="Qcur", op="MUL_MAT", layer=1, start_ns=3, duration_ns=2),
            ),
        ),
    ),
    graphs=(
        PhaseGraph(
            phase="decode",
            nodes=(RoleNode(role="Qcur", op="MUL_MAT", n_operators=2, time_ns=4),),
            edges=(RoleEdge(source="embd", target="Qcur"),),
        ),
    ),
    works=(CaseWork(case_id="phase/a/b/decode", flops=1, moved_bytes=2),),
    states=(
        MachineState(
            group="llama",
            at_s=0.5,
            is_valid=True,
            load_average=0.1,
            cpu_mhz=None,
            temperature_celsius=None,
            waiting_ratio=0.0,
            steal_ratio=None,
            throttled=False,
            battery_ratio=0.8,
            power_watts=6.5,
            least_cpu_mhz=1800.0,
            most_cpu_mhz=2400.0,
            most_celsius=91.5,
        ),
    ),
)


@given(observation=_OBSERVATIONS)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, observation: Observation) -> None:
    """Whatever an observation holds, reading gives the very record that was written."""
    folder = tmp_path_factory.mktemp("run")
    write_observation(observation, folder)
    assert read_observation(folder) == observation


def test_runs_of_older_versions_are_read(tmp_path: Path) -> None:
    """Without the file, or without what boards report, that was not measured; a folder is refused."""
    assert read_observation(tmp_path) == NO_OBSERVATION
    plain = plain_observation(_FULL)
    for name in ("throttled", "battery_ratio", "power_watts"):
        del plain["states"][0][name]
    (tmp_path / "observation.json").write_text(json.dumps(plain))
    (state,) = read_observation(tmp_path).states
    assert (state.throttled, state.battery_ratio, state.power_watts, state.load_average) == (None, None, None, 0.1)
    (tmp_path / "observation.json").unlink()
    (tmp_path / "observation.json").mkdir()
    with pytest.raises(PerfsuiteError, match=r"observation\.json: cannot be read \(Is a directory\)"):
        read_observation(tmp_path)


def test_an_operator_is_a_row_of_numbers(tmp_path: Path) -> None:
    """Names stand once: 32 layers, 512 tokens and 500 cases are less than 300 KB."""
    (timeline,) = json.loads(json.dumps(plain_observation(_FULL)))["timelines"]
    assert timeline["names"] == [{"role": "embd", "op": "GET_ROWS"}, {"role": "Qcur", "op": "MUL_MAT"}]
    assert timeline["operator_fields"] == ["name", "layer", "start_ns", "duration_ns"]
    assert timeline["operators"] == [[0, None, 0, 1], [1, 0, 1, 2], [1, 1, 3, 2]]
    row = [
        OperatorSpan(role=f"role_{index}", op="MUL_MAT", layer=layer, start_ns=10**9 + index, duration_ns=10**6 + index)
        for layer in range(32)
        for index in range(17)
    ]
    timelines = [
        PhaseTimeline(phase=phase, n_tokens=1, duration_ns=10**10, operators=tuple(row * n_batches))
        for phase, n_batches in (("prefill", 4), ("decode", 1))
    ]
    works = [CaseWork(case_id=f"operator/{'x' * 40}/{n}", flops=10**9, moved_bytes=10**8) for n in range(500)]
    tokens = [TokenLatency(n_context=n, samples_ns=(30_000_000,) * 10) for n in range(512)]
    seen = Observation(timelines=tuple(timelines), works=tuple(works), tokens=tuple(tokens))
    assert write_observation(seen, tmp_path).stat().st_size < 300_000


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", r"observation\.json: is not JSON \("),
        ("[" * 100_000, r"observation\.json: is not JSON \("),
        ("[]", r"observation\.json: is a list, expected an object"),
        ('{"schema": 7}', r"observation\.json: schema is 7, expected 1"),
        ('{"schema": 1}', r"observation\.json: tokens is missing; delete it or run again"),
    ],
)
def test_what_is_no_observation_is_one_line(tmp_path: Path, content: str, line: str) -> None:
    """The file is named, what is wrong with it, and what to do."""
    (tmp_path / "observation.json").write_text(content)
    with pytest.raises(PerfsuiteError, match=line) as raised:
        read_observation(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("place", "value", "line"),
    [
        (("tokens", 0, "samples_ns", 1), "3", r"tokens\[0\]\.samples_ns\[1\] is '3', expected a whole number"),
        (("timelines", 0, "duration_ns"), -1, r"timelines\[0\]\.duration_ns is -1, expected a whole number"),
        (("timelines", 0, "operators", 0, 3), None, r"operators\[0\]\[3\] is null, expected a whole number"),
        (("timelines", 0, "operators", 0), [0, 0], r"operators\[0\] has 2 values, expected 4"),
        (("timelines", 0, "operators", 0, 0), 2, r"timelines\[0\]: an operator has a name beyond the 2 names"),
        (("works", 0, "flops"), 1.5, r"works\['phase/a/b/decode'\]\.flops is 1\.5, expected a whole number"),
        (("states", 0, "at_s"), float("nan"), r"is not JSON \(NaN is not a number of JSON\)"),
        (("states", 0, "is_valid"), 1, r"states\[0\]\.is_valid is 1, expected true or false"),
        (("states", 0, "throttled"), 1, r"states\[0\]\.throttled is 1, expected true or false, or null"),
        (("states", 0, "power_watts"), "6", r"states\[0\]\.power_watts is '6', expected a finite number"),
    ],
)
def test_a_value_of_another_type_is_named(tmp_path: Path, place: tuple[Any, ...], value: object, line: str) -> None:
    """What a chart could not draw is refused with the way to it."""
    (tmp_path / "observation.json").write_text(
        json.dumps(with_value(json.loads(json.dumps(plain_observation(_FULL))), place, value))
    )
    with pytest.raises(PerfsuiteError, match=rf"observation\.json: .*{line}"):
        read_observation(tmp_path)


@pytest.mark.parametrize("wrong", [None, 7, "word", [], {}, [None]], ids=repr)
def test_a_wrong_value_is_never_a_traceback(tmp_path: Path, wrong: object) -> None:
    """Whatever is in the place of a field, the file is read or refused in one line that names it."""
    plain = plain_observation(_FULL)
    reported = []
    for place in places(plain):
        (tmp_path / "observation.json").write_text(json.dumps(with_value(plain, place, wrong)))
        try:
            read_observation(tmp_path)
        except PerfsuiteError as error:
            reported.append(str(error))
    assert reported
    assert all("observation.json: " in line and "\n" not in line for line in reported)
