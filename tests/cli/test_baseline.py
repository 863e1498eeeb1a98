"""``perfsuite baseline``, on runs that were never measured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.errors import BaselineError
from perfsuite.records.whole_file import write_json
from perfsuite.verdict.baseline import read_baselines
from tests.command_streams import Refused, Streams
from tests.plain_runs import plain_run_of

DECODE, PREFILL = "phase/a-q8_0/siso/decode", "phase/a-q8_0/siso/prefill"
KERNEL = "kernel/add/n8/f32"
REASON = "the new kernel keeps more accurate sums"

WriteRun = Callable[..., Path]


def plain_case(case_id: str, samples_ns: tuple[int, ...], outcome: str = "new") -> dict[str, Any]:
    """A case as run.json has it, with what baselines read of it."""
    return {"id": case_id, "kind": case_id.split("/")[0], "samples_ns": list(samples_ns), "outcome": outcome}


@pytest.fixture
def write_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteRun:
    """Return how to write a run, each a day after the one before, and make the folder of baselines the default's."""
    monkeypatch.chdir(tmp_path)
    written: list[Path] = []

    def write(
        factor: float = 1.0,
        *,
        cases: tuple[str, ...] = (DECODE, PREFILL),
        threads: str = "2",
        soc: str = "A",
        outcomes: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Path:
        times = tuple(round(1_000_000 * factor * (1 + step / 1000)) for step in range(5))
        told = {
            "started_at": f"2025-01-{len(written) + 1:02}T00:00:00+00:00",
            "workload": "a-q8_0/siso",
            "fingerprint": {"llama": {"soc": soc, "threads": threads}, "kernels": {"soc": "A"}},
        }
        judged = (plain_case(case_id, times, (outcomes or {}).get(case_id, "new")) for case_id in cases)
        plain = plain_run_of(*judged, **told | fields)
        path = tmp_path / f"run-{len(written)}.json"
        path.write_text(json.dumps(plain))
        written.append(path)
        return path

    return write


def run(*arguments: object) -> int:
    return main(["baseline", *map(str, arguments)])


STORE = Path("baselines/host/a-q8_0.json")


def shown(capsys: Streams, *arguments: str) -> dict[str, Any]:
    """What ``show --json`` tells of the only entry."""
    capsys.readouterr()
    assert run("show", "host", "a-q8_0", "--json", *arguments) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert isinstance(entry, dict)
    return entry


def differences(capsys: Streams, path: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """What ``diff --json`` tells, by case."""
    capsys.readouterr()
    run("diff", path, "--json", *arguments)
    return {each["id"]: each for each in json.loads(capsys.readouterr().out)["cases"]}


def test_a_run_is_recorded_as_a_session(write_run: WriteRun, capsys: Streams) -> None:
    """Each group goes to its own file, with samples, sentinels and covariates, anchored at the first session."""
    path = write_run(
        cases=(DECODE, KERNEL),
        sentinels_ns={"llama": {"memory": [5, 6, 7], "compute": [3, 3, 3]}},
        covariates={"llama": {"load_average": 0.5, "cpu_mhz": None}},
    )
    assert run("record", path) == 0
    assert "1 case of 2025-01-01" in capsys.readouterr().out
    (entry,) = read_baselines(STORE).entries
    (session,) = entry.sessions
    assert session.samples_ns == {DECODE: (1_000_000, 1_001_000, 1_002_000, 1_003_000, 1_004_000)}
    assert session.sentinels_ns == {"memory": (5, 6, 7), "compute": (3, 3, 3)}
    assert session.covariates == {"load_average": 0.5, "cpu_mhz": None}
    assert entry.anchor.cases_ns == {DECODE: 1_002_000}
    assert entry.anchor.sentinels_ns == {"memory": 6, "compute": 3}
    assert read_baselines(Path("baselines/host/kernels.json")).entries[0].case_ids == (KERNEL,)


def test_a_run_is_recorded_once(write_run: WriteRun, refused: Refused) -> None:
    """The same run twice would count as two sessions; one that is the reference has nothing to approve."""
    path = write_run()
    run("record", path)
    before = STORE.read_bytes()
    line = refused(["baseline", "record", str(path)])
    assert "holds the session of 2025-01-01T00:00:00+00:00 already" in line
    assert STORE.read_bytes() == before
    assert "is the reference already" in refused(["baseline", "approve", str(path), "--reason", REASON])
    assert read_baselines(STORE).entries[0].approvals == ()


def test_a_record_that_was_cut_off_is_completed(write_run: WriteRun, capsys: Streams) -> None:
    """Where one of the run's files has its session and another lacks it, a repetition adds what is lacking."""
    path = write_run(cases=(DECODE, KERNEL))
    run("record", path)
    kernels = Path("baselines/host/kernels.json")
    whole, model = kernels.read_bytes(), STORE.read_bytes()
    kernels.unlink()
    run("record", path)
    assert (kernels.read_bytes(), STORE.read_bytes()) == (whole, model)


def test_an_approval_that_was_cut_off_is_completed(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """A kill between two of its files leaves each whole, and a repetition writes what is lacking."""
    run("record", write_run(cases=(DECODE, KERNEL)))
    path = write_run(1.2, cases=(DECODE, KERNEL))

    def killed(path: Path, plain: Mapping[str, Any], _: object) -> None:
        if path.name == "kernels.json":
            raise KeyboardInterrupt
        write_json(path, plain, BaselineError)

    def n_approvals() -> list[int]:
        paths = (Path(f"baselines/host/{name}.json") for name in ("a-q8_0", "kernels"))
        return [len(entry.approvals) for path in paths for entry in read_baselines(path).entries]

    with monkeypatch.context() as patch:
        patch.setattr("perfsuite.verdict.baseline.write_json", killed)
        main(["baseline", "approve", str(path), "--reason", REASON])
    assert n_approvals() == [1, 0]
    run("approve", path, "--reason", REASON)
    assert n_approvals() == [1, 1]
    for name in ("a-q8_0", "kernels"):
        assert Path(f"baselines/host/{name}.approvals.md").read_text().count("The run of 2025-01-02") == 1


@pytest.mark.long
def test_records_at_once_lose_no_session(write_run: WriteRun) -> None:
    """Each of several commands that end at the same moment finds its session in the file."""
    paths = [write_run() for _ in range(6)]
    command = [sys.executable, "-m", "perfsuite.cli", "baseline", "record"]
    started = [subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL) for path in paths]
    assert [each.wait(120) for each in started] == [0] * 6
    (entry,) = read_baselines(STORE).entries
    assert len(entry.sessions) == 6


def test_what_was_not_measured_properly_is_left_out(write_run: WriteRun, capsys: Streams) -> None:
    """INVALID and IMPOSSIBLE cases are named and not recorded."""
    path = write_run(cases=(DECODE, PREFILL, KERNEL), outcomes={PREFILL: "invalid", KERNEL: "impossible"})
    assert run("record", path) == 0
    out = capsys.readouterr().out
    assert f"left out, invalid (1): {PREFILL}\n" in out
    assert f"left out, impossible (1): {KERNEL}\n" in out
    assert read_baselines(STORE).entries[0].case_ids == (DECODE,)
    assert not Path("baselines/host/kernels.json").exists()


def test_a_difference_beyond_the_margin_ends_with_1(write_run: WriteRun, capsys: Streams) -> None:
    """A case that is slower than stored by more than the margin makes the exit code 1, and the table says which."""
    run("record", write_run())
    assert run("diff", write_run(1.04)) == 0
    slow = write_run(1.08)
    capsys.readouterr()
    assert run("diff", slow) == 1
    out = capsys.readouterr().out
    assert "+8.0 %" in out
    assert "2 of 2 cases are slower than stored by more than 5 %" in out
    assert run("diff", slow, "--margin", "0.1") == 0
    assert run("diff", write_run(0.5)) == 0
    found = differences(capsys, slow)[DECODE]
    assert (found["change_ratio"], found["since_anchor_ratio"]) == pytest.approx((1.08, 1.08))
    assert (found["stored_ns"], found["new_ns"], found["is_beyond"]) == (1_002_000, 1_082_160, True)


def test_a_case_that_is_not_stored_has_no_change(write_run: WriteRun, capsys: Streams) -> None:
    """A new case is reported beside the others, without a change and a failure; a group that is not stored is named."""
    run("record", write_run(cases=(DECODE,)))
    found = differences(capsys, write_run(1.0, cases=(DECODE, PREFILL)))[PREFILL]
    assert found["stored_ns"] is found["change_ratio"] is found["since_anchor_ratio"] is None
    assert run("diff", write_run(cases=(DECODE, PREFILL))) == 0
    assert PREFILL in capsys.readouterr().out
    assert run("diff", write_run(cases=(DECODE, KERNEL))) == 0
    out, err = capsys.readouterr()
    assert KERNEL not in out
    assert (
        err == "perfsuite: baselines/host/kernels.json: nothing comparable is stored (no baseline yet); "
        "its cases are left out\n"
    )


def test_a_run_is_not_compared_with_itself(write_run: WriteRun, capsys: Streams) -> None:
    run("record", write_run())
    run("record", slow := write_run(1.08))
    assert differences(capsys, slow)[DECODE]["change_ratio"] == pytest.approx(1.08)


def test_the_drift_of_a_sentinel_is_divided_out(write_run: WriteRun, capsys: Streams) -> None:
    """Compute follows its sentinel in full, memory by the profile's weight; other cases do not move."""
    before = {"llama": {"memory": [1000] * 3, "compute": [1000] * 3}}
    after = {"llama": {"memory": [1100] * 3, "compute": [1100] * 3}}
    run("record", write_run(sentinels_ns=before))
    found = differences(capsys, write_run(1.1, sentinels_ns=after))
    assert found[PREFILL]["change_ratio"] == pytest.approx(1.0)
    assert found[DECODE]["change_ratio"] == pytest.approx(1.1 / 1.1**0.25)
    assert found[DECODE]["since_anchor_ratio"] == pytest.approx(1.1 / 1.1**0.25)
    assert found[DECODE]["stored_ns"] == 1_002_000


@pytest.mark.parametrize("absurd", ["no samples", "no other session", "sentinels of 1 ns"])
def test_nothing_to_compare_with_is_no_pass(write_run: WriteRun, capsys: Streams, absurd: str) -> None:
    """A baseline without samples, of the run alone, or of another device says so, and the exit code is 10."""
    sentinels = {"llama": {name: [1000] * 3 for name in ("memory", "compute")}}
    path = write_run(sentinels_ns=sentinels)
    run("record", path)
    stored = json.loads(STORE.read_text("utf-8"))
    (session,) = stored["entries"][0]["sessions"]
    if absurd == "no samples":
        session["cases"] = {name: [] for name in session["cases"]}
    elif absurd == "sentinels of 1 ns":
        session["sentinels_ns"] = {name: [1] for name in session["sentinels_ns"]}
    STORE.write_text(json.dumps(stored), "utf-8")
    new = path if absurd == "no other session" else write_run(1.5, sentinels_ns=sentinels)
    capsys.readouterr()
    assert run("diff", new) == 10
    out = capsys.readouterr().out
    assert "2 of 2 cases: nothing is stored that it can be compared with" in out
    assert "slower than stored" not in out
    assert ("the device has changed: the memory sentinel moved by" in out) is (absurd == "sentinels of 1 ns")
    assert run("approve", new, "--reason", "a new reference") == (2 if absurd == "no other session" else 0)


def test_a_time_of_nothing_is_never_stored(write_run: WriteRun, capsys: Streams) -> None:
    """A case with a sample of 0 ns is left out of what is recorded, which no later run could read."""
    path = write_run()
    plain = json.loads(path.read_text("utf-8"))
    plain["cases"][0]["samples_ns"][1] = 0
    path.write_text(json.dumps(plain), "utf-8")
    assert run("record", path) == 0
    assert plain["cases"][0]["id"] in capsys.readouterr().out
    assert plain["cases"][0]["id"] not in read_baselines(STORE).entries[0].case_ids


def test_an_approval_makes_a_run_the_reference(write_run: WriteRun, capsys: Streams) -> None:
    """The old sessions go, their medians and the change stay, and a difference can be reviewed."""
    for factor in (1.0, 1.0):
        run("record", write_run(factor))
    assert run("approve", write_run(1.08), "--reason", REASON) == 0
    (entry,) = read_baselines(STORE).entries
    (session,) = entry.sessions
    assert session.recorded_at == "2025-01-03T00:00:00+00:00"
    (approval,) = entry.approvals
    assert approval.reason == REASON
    assert approval.retired_ns == {DECODE: 1_002_000, PREFILL: 1_002_000}
    assert approval.change_ratio == {DECODE: pytest.approx(1.08), PREFILL: pytest.approx(1.08)}
    assert entry.anchor.cases_ns[DECODE] == 1_002_000
    told = STORE.with_name("a-q8_0.approvals.md").read_text()
    assert told.startswith("# Approvals: host/a-q8_0\n")
    assert f": {REASON}\n" in told
    assert f"| `{DECODE}` | 1.00 ms | 1.08 ms | +8.0 % | +8.0 % |" in told
    assert run("diff", write_run(1.08)) == 0


def test_cases_that_were_not_run_keep_their_sessions(write_run: WriteRun) -> None:
    """An approval of some cases leaves the others, and what is invalid, as they were."""
    run("record", write_run())
    run("approve", write_run(1.08, outcomes={PREFILL: "invalid"}), "--reason", REASON)
    (entry,) = read_baselines(STORE).entries
    assert entry.reference_ns(PREFILL) == 1_002_000
    assert entry.reference_ns(DECODE) == 1_082_160
    assert entry.approvals[0].retired_ns == {DECODE: 1_002_000}


def test_five_approvals_are_seen_from_the_anchor(write_run: WriteRun, capsys: Streams) -> None:
    """Each of 3 % is within any margin, and 15.9 % since the anchor; after pinning it is measured from there."""
    run("record", write_run())
    for step in range(1, 6):
        assert run("approve", write_run(1.03**step), "--reason", REASON) == 0
    latest = write_run(1.03**5)
    found = differences(capsys, latest)[DECODE]
    assert found["change_ratio"] == pytest.approx(1.0, abs=1e-4)
    assert found["since_anchor_ratio"] == pytest.approx(1.03**5, rel=1e-4)
    assert run("diff", latest) == 0
    assert "+15.9 %" in capsys.readouterr().out
    assert "+15.9 % |" in STORE.with_name("a-q8_0.approvals.md").read_text()
    entry = shown(capsys)
    assert len(entry["approvals"]) == 5
    assert entry["cases"][0]["since_anchor_ratio"] == pytest.approx(1.03**5, rel=1e-4)
    assert run("anchor", "host", "a-q8_0", "--reason", "the accurate kernel is here to stay") == 0
    entry = shown(capsys)
    assert entry["anchor"]["reason"] == "the accurate kernel is here to stay"
    assert entry["cases"][0]["since_anchor_ratio"] == pytest.approx(1.0)


def test_old_sessions_are_pruned(write_run: WriteRun, capsys: Streams) -> None:
    """The newest sessions of each case are kept; a case that is in old ones only keeps those."""
    run("record", write_run(cases=(PREFILL,)))
    for _ in range(4):
        run("record", write_run(cases=(DECODE,)))
    capsys.readouterr()
    assert run("prune", "host", "a-q8_0", "--keep", "2") == 0
    assert capsys.readouterr().out == f"{STORE}: 3 of 5 sessions kept\n"
    (entry,) = read_baselines(STORE).entries
    assert [list(each.samples_ns) for each in entry.sessions] == [[PREFILL], [DECODE], [DECODE]]
    assert entry.sessions[-1].recorded_at == "2025-01-05T00:00:00+00:00"


def test_an_entry_is_chosen_by_its_fingerprint(write_run: WriteRun, capsys: Streams) -> None:
    run("record", write_run(threads="2"))
    run("record", write_run(threads="4"))
    assert shown(capsys, "--where", "threads=4")["fingerprint"]["threads"] == "4"
    assert run("anchor", "host", "a-q8_0", "--reason", REASON, "--where", "threads=4") == 0
    assert [entry.anchor.reason for entry in read_baselines(STORE).entries] == ["the first session", REASON]


@pytest.mark.parametrize("action", ["record", "approve"])
def test_a_run_that_was_slowed_down_is_no_reference(write_run: WriteRun, refused: Refused, action: str) -> None:
    """What --perf-inject slowed down is neither recorded nor approved."""
    path = write_run(injected=True)
    reason = ["--reason", REASON] if action == "approve" else []
    assert "was slowed down on purpose" in refused(["baseline", action, str(path), *reason])
    assert not STORE.exists()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"device": "../out"}, "device is '../out', expected a plain name"),
        ({"device": "/tmp"}, "device is '/tmp', expected a plain name"),
        ({"workload": "../../out/siso"}, "workload's model is '../../out', expected a plain name"),
        ({"workload": "siso"}, "workload's model is '', expected a plain name"),
    ],
)
def test_a_run_of_a_name_that_leads_elsewhere_is_refused(
    write_run: WriteRun, refused: Refused, tmp_path: Path, fields: dict[str, str], told: str
) -> None:
    """Neither action makes a path of it, and nothing is written anywhere."""
    path = write_run(**fields)
    before = sorted(tmp_path.rglob("*"))
    for action in (["record"], ["diff"], ["approve", "--reason", REASON]):
        assert f"{path}: {told}" in refused(["baseline", action[0], str(path), *action[1:]])
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("named", [["../host", "a-q8_0"], ["host", "../../x"]])
def test_a_file_is_looked_for_in_the_folder_alone(refused: Refused, named: list[str]) -> None:
    """What names a file on the command line is a plain name, too."""
    for action in (["show"], ["prune", "--keep=1"], ["anchor", "--reason", REASON]):
        assert "expected a plain name" in refused(["baseline", action[0], *named, *action[1:]])


@pytest.mark.parametrize("action", ["diff", "approve"])
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [({}, {"threads": "4"}, "no baseline with threads 4 yet"), ({}, {"soc": "B"}, "soc 'A', now 'B'")],
)
def test_another_fingerprint_is_told(
    write_run: WriteRun, refused: Refused, action: str, old: dict[str, str], new: dict[str, str], told: str
) -> None:
    """Where nothing comparable is stored, what was asked for or what differs, and the way out, are one line."""
    run("record", write_run(**old))
    path = str(write_run(**new))
    reason = ["--reason", REASON] if action == "approve" else []
    line = refused(["baseline", action, path, *reason])
    assert f"baselines/host/a-q8_0.json: nothing comparable is stored ({told})" in line
    assert "perfsuite baseline record" in line


def test_a_mistake_stores_nothing(write_run: WriteRun, refused: Refused) -> None:
    """A reason that says nothing approves nothing, and pruning keeps a session at least."""
    run("record", write_run())
    before = STORE.read_bytes()
    assert "expected 10 or more" in refused(["baseline", "approve", str(write_run(1.2)), "--reason", "    why?      "])
    assert "expected 10 or more" in refused(["baseline", "anchor", "host", "a-q8_0", "--reason", "because"])
    assert "--keep=0: expected an integer of 1" in refused(["baseline", "prune", "host", "a-q8_0", "--keep", "0"])
    assert STORE.read_bytes() == before


def test_a_run_is_named_by_its_folder_too(write_run: WriteRun, tmp_path: Path) -> None:
    """As the other commands have it; --baseline-dir names where baselines lie."""
    other = ("--baseline-dir", tmp_path / "other")
    run("record", write_run(), *other)
    (tmp_path / "perf-run").mkdir()
    write_run().rename(tmp_path / "perf-run" / "run.json")
    for action in (["record"], ["diff"], ["approve", "--reason", REASON]):
        run(*action, tmp_path / "perf-run", *other)
    (entry,) = read_baselines(tmp_path / "other" / "host" / "a-q8_0.json").entries
    assert len(entry.approvals) == 1
    assert not STORE.exists()


def of_board(identity: str) -> dict[str, Any]:
    """A board that was reached over a link, as run.json has it."""
    return {"identity": identity, "hostname": "shelf", "is_linked": True}


def test_boards_of_a_kind_are_recorded_apart(write_run: WriteRun, capsys: Streams) -> None:
    """A board that is 8 % slower is compared with itself, and each is shown and pruned by itself."""
    for _ in range(3):
        run("record", write_run(1.08, board=of_board("slow")))
    run("record", write_run(1.0, board=of_board("fast")))
    changes = differences(capsys, write_run(1.08, board=of_board("slow")))
    assert changes[DECODE]["change_ratio"] == pytest.approx(1.0)
    assert run("show", "host", "a-q8_0") == 0
    assert "soc A, threads 2, board slow\n" in capsys.readouterr().out
    assert [shown(capsys, "--board", name)["board"] for name in ("slow", "fa")] == ["slow", "fast"]
    run("prune", "host", "a-q8_0", "--keep", "2")
    assert [len(entry.sessions) for entry in read_baselines(STORE).entries] == [2, 1]


def test_a_board_without_sessions_is_told(write_run: WriteRun, refused: Refused) -> None:
    """Those of other boards are no reference, and of none is asked for without effect."""
    run("record", write_run(board=of_board("slow")))
    line = refused(["baseline", "diff", str(write_run(board=of_board("fast")))])
    assert "(no baseline of this board yet, though 1 other board of its kind has one)" in line
    assert "no entry has the board 'third'" in refused(["baseline", "show", "host", "a-q8_0", "--board", "third"])


def test_a_run_is_approved_for_its_own_board(write_run: WriteRun, capsys: Streams) -> None:
    """A board that was compared with sessions of no board has its own from then on; the others keep theirs."""
    run("record", write_run(1.0))
    run("record", write_run(1.0, board=of_board("other")))
    path = write_run(1.2, board=of_board("slow"))
    assert differences(capsys, path)[DECODE]["change_ratio"] == pytest.approx(1.2, rel=0.01)
    assert run("approve", path, "--reason", REASON) == 0
    shared, other, slow = read_baselines(STORE).entries
    assert (shared.board, other.board, slow.board) == (None, "other", "slow")
    assert [each.reference_ns(DECODE) for each in (shared, other, slow)] == [1_002_000, 1_002_000, 1_202_400]
    assert [len(each.approvals) for each in (shared, other, slow)] == [0, 0, 1]
    told = STORE.with_name("a-q8_0.approvals.md").read_text()
    assert "on soc A, threads 2, board slow." in told
    assert f"| `{DECODE}` | 1.00 ms | 1.20 ms | +20.0 % | - |" in told
    assert differences(capsys, write_run(1.2, board=of_board("slow")))[DECODE]["change_ratio"] == pytest.approx(1.0)


@pytest.mark.parametrize("action", ["record", "approve"])
def test_a_boards_anchor_is_its_own_first_session(write_run: WriteRun, capsys: Streams, action: str) -> None:
    """Whichever command stores it: a board that differs from those before it has not crept, and creeps from there."""
    run("record", write_run(1.0))
    path = write_run(1.3, board=of_board("slow"))
    reason = ["--reason", REASON]
    assert run(action, path, *(reason if action == "approve" else [])) == 0
    shared, slow = read_baselines(STORE).entries
    assert (shared.anchor.cases_ns[DECODE], slow.anchor.cases_ns[DECODE]) == (1_002_000, 1_302_600)
    assert slow.anchor.recorded_at == "2025-01-02T00:00:00+00:00"
    assert run("approve", write_run(1.43, board=of_board("slow")), *reason) == 0
    assert shown(capsys, "--board", "slow")["cases"][0]["since_anchor_ratio"] == pytest.approx(1.1, rel=1e-3)


def test_a_case_that_a_board_has_not_yet_of_its_own_has_not_crept(write_run: WriteRun) -> None:
    """It was compared with the entry without a board, whose anchor is another machine's."""
    run("record", write_run(1.0))
    run("record", write_run(1.2, cases=(DECODE,), board=of_board("slow")))
    assert run("approve", write_run(1.3, board=of_board("slow")), "--reason", REASON) == 0
    told = STORE.with_name("a-q8_0.approvals.md").read_text()
    since = {line.split("`")[1]: line.split("|")[-2].strip() for line in told.splitlines() if line.startswith("| `")}
    assert (since[DECODE], since[PREFILL]) == ("+8.3 %", "-")


def test_a_run_on_the_machine_itself_is_of_no_board(write_run: WriteRun) -> None:
    """CI machines that have another identity each night are one entry."""
    for night in "ab":
        run("record", write_run(board={"identity": night, "hostname": "ci", "is_linked": False}))
    (entry,) = read_baselines(STORE).entries
    assert (entry.board, len(entry.sessions)) == (None, 2)
