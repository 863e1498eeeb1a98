"""What ``tools/compare_links.py`` has on both of its sides: the board at the end of the link, and its cases."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from platform import machine

from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.reach import Reach
from perfsuite.errors import MeasurementError
from perfsuite.measure.environment import ENGINE_NAME
from perfsuite.measure.kernel_runtime import opencl_environment

#: What of this user's cache both sides need, so that nothing is compiled within a run.
_LENT = ("native", "opencl-backend-*", "models")

#: Longest for the setup of a board by a bundle, s.
_SETUP_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """An sshd on this machine, and what the local side is started with so that it does the same."""

    reach: Reach
    home: Path
    #: A bundle that it is to be set up by; None where it has this checkout's suite in Python.
    bundle: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def set_up(self, folder: Path, name: str) -> None:
        """Set it up by its bundle alone, where it has one; raises `MeasurementError` where that fails."""
        if self.bundle is None:
            return
        command = [sys.executable, "-m", "perfsuite.cli", "devices", "setup", name, f"--bundle={self.bundle}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=_SETUP_LIMIT_S)
        if done.returncode:
            raise MeasurementError(f"the board was not set up: {(done.stderr.strip() or 'no reason').splitlines()[-1]}")


@contextmanager
def loopback(*, by_bundle: bool) -> Iterator[Board]:
    """Start an sshd on a loopback port: with this checkout's suite, or by a bundle and without any Python."""
    from tests.board_loopback import LoopbackBoard, loopback_obstacle  # only where no address was given

    if obstacle := loopback_obstacle():
        raise MeasurementError(f"{obstacle}; or name an --address")
    bundle, environment = _bundle() if by_bundle else (None, {})
    board = LoopbackBoard(_vendors())
    try:
        lend_cache(board.home / ".cache" / "perfsuite")
        if bundle is None:
            place = board.home / ".local" / "share" / "perfsuite" / "venv"
            place.parent.mkdir(parents=True)
            place.symlink_to(sys.prefix)
        else:
            backend = board.home / ".cache" / "perfsuite" / f"opencl-backend-{_build_id(bundle)}" / "plain"
            backend.mkdir(parents=True)
            shutil.copyfile(bundle / "lib" / "libggml-opencl.so", backend / "libggml-opencl.so")
        yield Board(reach=board.reach(), home=board.home, bundle=bundle, environment=environment)
    finally:
        board.stop()


def _vendors() -> dict[str, str]:
    """Return what makes the same OpenCL visible on the board as here."""
    vendors = opencl_environment(user_cache(), inherited=os.environ.get("OCL_ICD_VENDORS")).get("OCL_ICD_VENDORS")
    return {} if vendors is None else {"OCL_ICD_VENDORS": vendors}


def lend_cache(cache: Path) -> None:
    """Let a cache have what this user's has compiled and written."""
    cache.mkdir(parents=True)
    for pattern in _LENT:
        for path in user_cache().glob(pattern):
            (cache / path.name).symlink_to(path)


def _bundle() -> tuple[Path, dict[str, str]]:
    """Make the bundle for this machine, and say how its very llama.cpp is measured without it."""
    from perfsuite.measure.bundle.compilers import find_toolchain
    from perfsuite.measure.bundle.engine_build import EngineOrder, build_engine
    from perfsuite.measure.bundle.llama_source import find_llama
    from perfsuite.measure.bundle.making import BundleOrder, make_bundle
    from perfsuite.measure.bundle.targets import target_of

    def tell(text: str, *_: int) -> None:
        print(text, file=sys.stderr, flush=True)

    target = target_of(machine(), has_glibc=True)
    order = BundleOrder(target=target, processor=target.processor(None), has_opencl=True)
    bundle = make_bundle(order, user_cache(), tell)
    source = find_llama(None, user_cache(), tell)
    tools = find_toolchain(order.compiler, target, order.processor)
    wanted = EngineOrder(source=source, target=target, processor=order.processor, toolchain=tools)
    engine = build_engine(wanted, user_cache(), tell)  # in the cache by now, with the headers that a bundle lacks
    return bundle.folder, {ENGINE_NAME: str(engine.library_dir.parent)}


def _build_id(bundle: Path) -> str:
    return str(json.loads((bundle / "manifest.json").read_text())["engine"]["build_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """What both sides of all pairs have judged, and how often the verdicts were the same."""

    n_cases: int
    n_kernels: int
    #: Cases that one side has in some pair, and not the other.
    on_one_side: tuple[str, ...]
    n_verdicts: int
    n_same_verdicts: int
    #: Cases whose verdict differs in most pairs: id, that over ssh, the local one.
    other_verdicts: tuple[tuple[str, str, str], ...]


def compared_cases(pairs: Iterable[tuple[Mapping[str, str], Mapping[str, str]]]) -> Cases:
    """Compare the verdicts of the cases of each pair: over ssh, local."""
    pairs = tuple(pairs)
    known = sorted({each for sides in pairs for side in sides for each in side})
    everywhere = [each for each in known if all(each in side for sides in pairs for side in sides)]
    told = [(each, ssh[each], local[each]) for each in everywhere for ssh, local in pairs]
    usual = [
        (each, *(_usual(side[each] for side in sides) for sides in zip(*pairs, strict=True))) for each in everywhere
    ]
    return Cases(
        n_cases=len(known),
        n_kernels=sum(each.startswith("kernel/") for each in known),
        on_one_side=tuple(each for each in known if each not in everywhere),
        n_verdicts=len(told),
        n_same_verdicts=sum(ssh == local for _, ssh, local in told),
        other_verdicts=tuple((each, ssh, local) for each, ssh, local in usual if ssh != local),
    )


def _usual(verdicts: Iterable[str]) -> str:
    return Counter(verdicts).most_common(1)[0][0]


def case_lines(found: Cases, *, shown: int = 8) -> Sequence[str]:
    """Say what differs, in lines."""
    same = "the same on both sides" if not found.on_one_side else f"{len(found.on_one_side)} on one side only"
    lines = [f"{found.n_cases} cases, {found.n_kernels} of them kernels: {same}"]
    lines += [f"  {each}" for each in found.on_one_side[:shown]]
    lines.append(f"{found.n_same_verdicts} of {found.n_verdicts} verdicts are the same on both sides of a pair")
    lines += [f"  {name}: {ssh} over ssh, {local} locally" for name, ssh, local in found.other_verdicts[:shown]]
    return lines


def verdicts_of(path: Path) -> Mapping[str, str]:
    """Return the verdict of each case of a run by its id."""
    return {each["id"]: each["outcome"] for each in json.loads(path.read_text())["cases"]}
