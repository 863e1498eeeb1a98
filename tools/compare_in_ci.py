"""Compare a pull request's llama.cpp with its base.

    python tools/compare_in_ci.py BASE HEAD --source DIR [--suspect=fail] [--strict=true] [-- OPTION ...]

`perfsuite compare` does the work; options behind '--' are its own. What it wrote goes into the job's summary, and
perf-run/run.json to the job that comments (tools/comment_in_ci.py). This job runs the pull request's own code, which
can read the environment of all that its account runs: with a token that may write comments it is refused.

Exit codes: 0 nothing regressed; what looks slower and is not proven to be, and that nothing could be decided, are
warnings. 1 something regressed, or one of these with --suspect=fail or --strict=true. Others are those of `perfsuite
compare`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

PERFSUITE = Path(sys.executable).with_name("perfsuite")
#: What may write comments, by the names of its variables.
TOKENS = ("GITHUB_TOKEN", "PERFSUITE_GITLAB_TOKEN")
#: Nothing could be judged, and something looks slower, as `perfsuite compare` and pytest say it.
UNDECIDED, SUSPECT = 10, 11


def summarise(run: Path, summary: Path) -> None:
    """Write the job's summary; where that fails, warn: the verdict stays what it is."""
    try:
        command = [PERFSUITE, "export", "github", run]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        with summary.open("a", encoding="utf-8") as file:
            file.write(text)
    except (OSError, subprocess.SubprocessError) as error:
        warn(f"perfsuite could not write its summary: {error}")


def warn(text: str) -> None:
    """Print a line that the service shows as a warning."""
    print(f"{'::warning::' if 'GITHUB_ACTIONS' in os.environ else 'warning: '}{text}")


def main() -> int:
    """Compare, summarise, and end as the verdict says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("base", help="revision that is compared with")
    parser.add_argument("head", help="revision that is judged")
    parser.add_argument("--source", default=".", metavar="DIR", help="the checkout of llama.cpp that has both")
    parser.add_argument("--build", default="", metavar="COMMAND", help="builds a revision (default: perfsuite's own)")
    parser.add_argument("--run-dir", default="perf-run", metavar="DIR", type=Path, help="where the run's files go")
    text = "true fails where nothing could be decided, too (default false)"
    parser.add_argument("--strict", choices=("true", "false"), default="false", help=text)
    text = "fail fails where something looks slower, not proven, too (default pass, with a warning)"
    parser.add_argument("--suspect", choices=("pass", "fail"), default="pass", help=text)
    arguments = sys.argv[1:]
    dashes = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:dashes])
    if given := [name for name in TOKENS if os.environ.get(name)]:
        parser.error(
            f"{given[0]}: is set in the job that runs the pull request's code; give it to the comment's job alone"
        )
    build = ["--build", options.build] if options.build else []
    written = options.run_dir / "run.json"
    written.unlink(missing_ok=True)  # what is there is another run's, or the pull request's
    command = [str(PERFSUITE), "compare", options.base, options.head, "--source", options.source, *build, "--quiet"]
    command += ["--", f"--perf-dir={options.run_dir}", *arguments[dashes + 1 :]]
    status = subprocess.run(command, check=False).returncode
    if not written.is_file():
        print("perfsuite: no run.json was left: nothing was compared")
        return status or 1
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        summarise(written, Path(summary))
    more = "give it more time, or a machine on which nothing else runs"
    if status == UNDECIDED:
        warn(f"perfsuite: nothing could be decided; {more}")
        return 1 if options.strict == "true" else 0
    if status == SUSPECT:
        warn(f"perfsuite: looks slower, not proven, or fewer than five pairs; look at the summary, or {more}")
        return 1 if options.suspect == "fail" else 0
    return status


if __name__ == "__main__":
    sys.exit(main())
