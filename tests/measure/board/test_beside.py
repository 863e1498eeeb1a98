"""What is done to a worker on a board, and seen of it, by the program beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board.beside import N_REFAULTS, AskedBeside, Beside
from perfsuite.measure.memory_limit import LEAST_LIMIT_BYTES
from perfsuite.measure.memory_timeline import MemoryWatch, NvidiaUse, measure_timeline
from perfsuite.measure.plan import LlamaPlan, dump_record

from ...sys_trees import put
from ..conftest import is_gone, wait_until
from .conftest import LLAMA, BoardHome, OnTree, Opened, rooted

LIMITED = Beside(memory_limit_bytes=LEAST_LIMIT_BYTES)
STATUS = b"VmHWM: 12 kB\nRssAnon: 4 kB\nRssFile: 5 kB\nRssShmem: 1 kB\n"


def test_processors_are_kept_busy_until_the_link_ends(bundled: BoardHome, opened: Opened) -> None:
    board = opened(bundled)

    def busy() -> list[psutil.Process]:
        return psutil.Process(bundled.pid).children(recursive=True)

    board.set_load(2)
    first = busy()
    assert len(first) == 2
    wait_until(lambda: all(sum(each.cpu_times()[:2]) > 0 for each in first))
    board.set_load(1)
    (second,) = busy()
    assert all(is_gone(each.pid) for each in first)
    board.close()
    assert is_gone(second.pid)
    board = opened(bundled)
    board.set_load(1)
    (third,) = busy()
    bundled.end()
    with pytest.raises(LinkError):
        board.close()
    wait_until(lambda: is_gone(third.pid))


@pytest.mark.long
def test_a_runs_memory_is_sampled_there(
    bundled: BoardHome, opened: Opened, engine_cache: Path, small_plan: LlamaPlan
) -> None:
    bundled.bring_libraries(engine_cache)
    timeline, vram = measure_timeline(small_plan, opened(bundled))
    assert timeline.peak_rss_bytes >= max(timeline.base.rss_bytes, *(each.rss_bytes for each in timeline.samples))
    assert timeline.phases[0].name == "load"
    assert timeline.samples[0].at_ns < timeline.samples[-1].at_ns
    assert (vram.n_bytes, vram.missing) == (None, "the run puts no layer on a GPU")


def watched(status: list[bytes], devices: list[list[list[object]]], refusal: str | None = None) -> MemoryWatch:
    told = {"pid": 1, "memory": {"status": list(enumerate(status)), "devices": devices, "refusal": refusal}}
    asked = AskedBeside(request={"memory": {"device_period_s": 0.5}}, nvidia=NvidiaUse())
    return MemoryWatch.from_plain(asked.payload(told)["memory"])


def test_a_gpus_memory_is_counted_at_its_most() -> None:
    """What its driver said at each look is summed by client as here; looks at a process that is gone count for none."""
    look = "drm-driver: amdgpu\ndrm-client-id: {}\ndrm-pdev: 0\ndrm-memory-vram: {} KiB\n".format
    devices: list[list[list[object]]] = [
        [],
        [["4", look(1, 8).encode()], ["5", look(2, 1).encode()], ["6", look(2, 1).encode()]],
        [["4", look(1, 2).encode()]],
    ]
    watch = watched([STATUS, b""], devices)
    assert watch.vram.n_bytes == 9 * 1024
    assert ([each.at_ns for each in watch.samples], watch.marks) == ([0], [12 * 1024])


@pytest.fixture
def _permitted(bundled: BoardHome, opened: Opened) -> None:
    """Skip where this machine lets nobody limit memory."""
    bundled.install("exit 1")
    with pytest.raises(MeasurementError) as caught:
        opened(bundled).run(replace(LLAMA, gguf_path=__file__), beside=LIMITED)
    if str(caught.value).startswith("memory limit"):
        pytest.skip(str(caught.value))


@pytest.mark.usefixtures("_permitted")
def test_a_worker_is_limited_from_its_first_page_on(bundled: BoardHome, opened: Opened, tmp_path: Path) -> None:
    (bundled.folder / "record").write_bytes(dump_record("llama", {"engine": {}}))
    group = tmp_path / "group"
    bundled.install(f'cat /proc/self/cgroup > {group}; cp "$(dirname "$0")/record" "$last"')
    board = opened(bundled)
    (tmp_path / "weights").write_bytes(bytes(4096))
    payload = board.run(replace(LLAMA, gguf_path=str(tmp_path / "weights")), beside=LIMITED)
    assert payload[N_REFAULTS] is None or payload[N_REFAULTS] >= 0
    (name,) = {line.rpartition("/")[2] for line in group.read_text().splitlines() if "/perfsuite-" in line}
    assert name.startswith(f"perfsuite-{bundled.pid}-")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{name}"))


@pytest.mark.usefixtures("_permitted")
def test_a_run_that_needs_more_than_its_limit_says_so(bundled: BoardHome, opened: Opened, tmp_path: Path) -> None:
    bundled.install("exec dd if=/dev/zero of=/dev/null bs=200M count=1")
    (tmp_path / "weights").write_bytes(b"")
    with pytest.raises(MeasurementError, match=rf"^memory limit of {LEAST_LIMIT_BYTES} bytes: the kernel stopped"):
        opened(bundled).run(replace(LLAMA, gguf_path=str(tmp_path / "weights")), beside=LIMITED)


@pytest.mark.parametrize(
    ("mounts", "text"),
    [
        ("tmpfs /run tmpfs rw 0 0", "memory limit: /sys/fs/cgroup has no memory controller"),
        ("cgroup /groups cgroup rw,memory 0 0", "memory limit: .*: no control group can be made .it is not there."),
        ("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0", "memory is not delegated to groups below it"),
    ],
)
def test_a_board_without_groups_says_what_is_missing(on_tree: OnTree, opened: Opened, mounts: str, text: str) -> None:
    root = rooted(home := on_tree("rubikpi"))
    put(root, "proc/self/cgroup", "0::/ours")
    put(root, "proc/mounts", mounts)
    put(root, "sys/fs/cgroup/cgroup.controllers", "cpu memory")
    board = opened(home)
    with pytest.raises(MeasurementError, match=text):
        board.run(replace(LLAMA, gguf_path=__file__), beside=LIMITED)
    with pytest.raises(MeasurementError, match=f"1000 bytes, expected {LEAST_LIMIT_BYTES} and more"):
        board.run(LLAMA, beside=Beside(memory_limit_bytes=1000))
    assert not list(root.glob("sys/fs/cgroup/perfsuite-*"))
