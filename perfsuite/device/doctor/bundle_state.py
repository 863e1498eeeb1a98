"""What a device says of its bundle: no Python is asked, and no library is loaded."""

from __future__ import annotations

from perfsuite.device.doctor.gathering import SuiteState
from perfsuite.device.lock.state import STATE_FOLDER, LockState
from perfsuite.device.setup.bundle_scripts import CURRENT, FOLDER
from perfsuite.device.setup.needs import Installed, last_answer
from perfsuite.device.stability.restore_file import FILE_NAME
from perfsuite.device.target.shell_target import Target
from perfsuite.errors import DeviceError
from perfsuite.records.bundle import MANIFEST_NAME, WORKER, parse_manifest

#: Ends with 1 where there is no bundle. Else: where its program keeps files, the file of governors that were left set,
#: what is free, what its lock is, and then its manifest.
_SCRIPT = f"""
home=$1; case $home in '~'|'~/'*) home=$HOME${{home#'~'}};; esac
b=$home/{FOLDER}/{CURRENT}; [ -f "$b/{MANIFEST_NAME}" ] || exit 1
c=${{XDG_CACHE_HOME:-$HOME/.cache}}/perfsuite; [ -d "$c" ] || c=$home
echo "$c"; r=$c/{STATE_FOLDER}/{FILE_NAME}; [ -e "$r" ] && echo "$r" || echo
df -Pk "$c" 2>/dev/null | tail -n 1
"$b/{WORKER}" lock state | tr -d '\\n'; echo
cat "$b/{MANIFEST_NAME}"
"""
_FREE_COLUMN = 3

#: What the program of a bundle does not do.
_NO_OPENCL = "not looked at: the bundle's program was not asked to load OpenCL"
_NO_EBPF = "not with a bundle"


def bundle_state(target: Target, home: str) -> SuiteState | None:
    """Return what a device's bundle says; None where it has none.

    Raises DeviceError: what is there is no bundle of this version; LinkError: the device cannot be reached.
    """
    answer = target.run(["sh", "-c", _SCRIPT, "perfsuite", home])
    lines = answer.text.split("\n", 4)
    if answer.status or len(lines) != 5:
        return None
    cache_dir, restore_file, free, lock, manifest_text = lines
    told = last_answer(lock)
    if told is None:
        raise DeviceError(f"its program does not run: {answer.last_words}")
    manifest = parse_manifest(manifest_text, f"{home}/{FOLDER}/{CURRENT}/{MANIFEST_NAME}")
    columns = free.split()
    return SuiteState(
        installed=Installed(
            suite_version=manifest.suite_version,
            plan_schema=manifest.plan_schema,
            python_version="",
            machine=manifest.machines[0] if manifest.machines else "",
            engine_build_id=manifest.engine.build_id,
            engine_problem=None,
        ),
        digest=None,
        lock=None if told["lock"] is None else LockState.from_plain(told["lock"]),
        restore_file=restore_file or None,
        cache_dir=cache_dir,
        cache_free_bytes=int(columns[_FREE_COLUMN]) * 1024 if len(columns) > _FREE_COLUMN else 0,
        is_busy=False,
        opencl_device=None,
        opencl_problem=_NO_OPENCL,
        ebpf_problem=_NO_EBPF,
        backend_problem=_NO_OPENCL,
        bundle=manifest,
    )
