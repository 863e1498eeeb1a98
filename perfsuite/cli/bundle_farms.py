"""The files by which farms run the folder of ``perfsuite bundle --plan``: each is beside it."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.records.job import RESULTS, SCRIPT

if TYPE_CHECKING:
    from perfsuite.records.job import Job

#: Where an Android shell may write and run, and the folder of it that Qualcomm's farm hands back.
#: *Source*: developer.android.com, `adb shell`; Qualcomm Device Cloud, logs of automated jobs.
_ON_PHONE = "/data/local/tmp/perfsuite-job"
_QDC_LOGS = "/data/local/tmp/QDC_logs"

#: Longest that a farm lets a job run, minutes.
_LIMIT_MINUTES = 120

#: Runs the folder beside it on the phone that adb sees, and leaves the answers where the farm takes logs from.
_QDC_TEST = f'''"""Runs a folder of perfsuite's on the device that adb sees."""

import os
import subprocess
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "job"
THERE, LOGS = "{_ON_PHONE}", os.environ.get("QDC_LOGS", "{_QDC_LOGS}")


def adb(*words: str) -> None:
    subprocess.run(["adb", *words], check=True)


def test_the_folder_is_run() -> None:
    adb("shell", f"mkdir -p {{THERE}} {{LOGS}}")
    adb("push", f"{{FOLDER}}/.", THERE)
    adb("shell", f"sh {{THERE}}/{SCRIPT} {{LOGS}}/{RESULTS}")
'''

#: *Source*: docs.aws.amazon.com, Device Farm, 'Test spec reference and syntax'.
_AWS_SPEC = f"""version: 0.1
android_test_host: amazon_linux_2
phases:
  pre_test:
    commands:
      - adb -s "$DEVICEFARM_DEVICE_UDID" shell mkdir -p {_ON_PHONE}
      - adb -s "$DEVICEFARM_DEVICE_UDID" push "$DEVICEFARM_TEST_PACKAGE_PATH/job/." {_ON_PHONE}
  test:
    commands:
      - adb -s "$DEVICEFARM_DEVICE_UDID" shell sh {_ON_PHONE}/{SCRIPT}
  post_test:
    commands:
      - adb -s "$DEVICEFARM_DEVICE_UDID" pull {_ON_PHONE}/{RESULTS} "$DEVICEFARM_LOG_DIR/{RESULTS}"
artifacts:
  - $DEVICEFARM_LOG_DIR
"""

#: What a board's own job says of deploying and booting stands before `actions`. Each request is a test case with the
#: time that it took. *Source*: docs.lavasoftware.org, 'Writing tests for LAVA', inline definitions, `lava-test-case`.
_LAVA_JOB = f"""# Put your board's deploy and boot actions before this one. FETCH and HAND_BACK are addresses that
# the board reaches: where the archive beside this file lies, and where what comes back is sent by PUT.
job_name: perfsuite on {{device}}
device_type: {{device}}
visibility: public
priority: medium
timeouts:
  job:
    minutes: {_LIMIT_MINUTES}
actions:
- test:
    timeout:
      minutes: {_LIMIT_MINUTES}
    parameters:
      FETCH: ""
      HAND_BACK: ""
    definitions:
    - from: inline
      name: perfsuite
      path: inline/perfsuite.yaml
      repository:
        metadata:
          format: Lava-Test Test Definition 1.0
          name: perfsuite
          description: runs a folder of perfsuite's
        run:
          steps:
          - mkdir -p perfsuite-job && cd perfsuite-job
          - wget -q -O - "$FETCH" | tar -xzf -
          - sh {SCRIPT} >run.log 2>&1 && run=pass || run=fail
          - cat run.log
          - lava-test-case run-folder --result $run
          - >-
            sed -n 's/^perfsuite: took \\([0-9.]*\\) s for \\([0-9]*\\)$/\\2 \\1/p' run.log |
            while read name seconds; do
            lava-test-case request-$name --result pass --measurement $seconds --units seconds; done
          - tar -czf - {RESULTS} | curl -sf -T - "$HAND_BACK"
"""


#: By farm: the ends of the names of the files that it takes.
_ENDINGS = {
    "aws": ("aws.yml", "aws.zip"),
    "device-run": ("device-run.json",),
    "lava": ("lava.yml", "lava.tar.gz"),
    "qdc": ("qdc.zip",),
}
FARMS = tuple(_ENDINGS)


def write_farm(name: str, folder: Path, job: Job) -> tuple[Path, ...]:
    """Write what a farm takes, beside the folder, and return the files."""
    beside = {each: folder.with_name(f"{folder.name}-{each}") for each in _ENDINGS[name]}
    for ending, path in beside.items():
        if ending.endswith(".zip"):
            _zip(folder, path)
        elif ending == "aws.yml":
            path.write_text(_AWS_SPEC)
        elif ending == "lava.yml":
            path.write_text(_LAVA_JOB.replace("{device}", job.device))
        elif ending == "lava.tar.gz":
            with tarfile.open(path, "w:gz", compresslevel=1) as out:
                for each in sorted(folder.iterdir()):
                    out.add(each, each.name)
        else:  # for services that run an executable on a phone by a form of their own
            told = {
                "push": [{"from": folder.name, "to": _ON_PHONE}],
                "command": f"sh {_ON_PHONE}/{SCRIPT}",
                "pull": [f"{_ON_PHONE}/{RESULTS}"],
                "limit_minutes": _LIMIT_MINUTES,
            }
            path.write_text(f"{json.dumps(told, indent=1)}\n")
    return tuple(beside.values())


def _zip(folder: Path, to: Path) -> None:
    """Pack the folder with a test that runs it; farms that start pytest take no other form."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        out.writestr("requirements.txt", "pytest\n")
        out.writestr("tests/test_perfsuite.py", _QDC_TEST)
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            out.write(path, f"job/{path.relative_to(folder)}")
