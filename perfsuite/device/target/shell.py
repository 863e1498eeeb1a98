"""Command lines that mean the same to every shell: POSIX scripts, as one line that any login shell can read."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence

from perfsuite.errors import DeviceError

#: Longest line: Linux takes 128 KiB as one argument of a program, with its end.
LONGEST_LINE_BYTES = 131071

#: What stands for itself in single quotes to dash, bash, zsh, fish and tcsh, and in a format of ``printf``. Digits are
#: not among it: some a ``printf`` would take them for the fourth of an octal number.
_PLAIN = frozenset((string.ascii_letters + " _./:=,@+-").encode())

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(word: str) -> str:
    """Return a word as a POSIX shell reads it back, whatever it holds."""
    return "'" + word.replace("'", "'\\''") + "'"


def run_script(
    command: Sequence[str], environment: Mapping[str, str], limit_s: float, mark: str, input_bytes: int = 0
) -> str:
    """Return the script that runs a command up to a limit, and tells its exit status after `mark` in the errors.

    The mark tells a command that ended with 255 from a link that did. The command's input is the first `input_bytes` of
    the script's; where the script's ends before the command does, nobody waits any more, and the command is ended.
    """
    fed = first_bytes(f"{input_bytes}") if input_bytes else ":"
    watch = quoted(f"cd /proc/$1 || cd /; {fed}; {_WATCH}")
    limit_s = max(1, math.ceil(limit_s))
    timer = quoted(_TIMER.format(limit_s=limit_s, kill_s=limit_s + 5))
    return (
        f"{_HOME}; set -- {_words(command, environment)}; exec 3<&0; perfsuite_gone= perfsuite_run=; "
        "trap 'perfsuite_gone=1; [ -z \"$perfsuite_run\" ] || { perfsuite_end; exit 143; }' TERM; "
        f"{_LIMITED.format(limit_s=limit_s, timer=timer)}; "
        f'{{ sh -c {watch} sh $$ <&3 3<&- 2>/dev/null & }} | "$@" 3<&- & '
        'perfsuite_run=$!; [ -z "$perfsuite_gone" ] || perfsuite_end; perfsuite_begun; wait "$perfsuite_run"; s=$?; '
        f'printf \'\\n%s %d\\n\' {mark} "$s" >&2; exit "$s"'
    )


#: Lets what runs be limited, by ``timeout`` or by a group of processes of its own with a timer beside it. The
#: ``timeout`` of toybox 0.8.9, which phones have, misses the end of its program at times, and says 127 at others.
_LIMITED = (
    'perfsuite_end() {{ kill "$perfsuite_run"; }}; perfsuite_begun() {{ :; }}; '
    "case $(timeout --help 2>&1 </dev/null) in *GNU* | *BusyBox*) "
    'if timeout -k 5 9 true </dev/null >/dev/null 2>&1; then set -- timeout -k 5 {limit_s} "$@"; fi ;; '
    '*) if setsid true </dev/null >/dev/null 2>&1; then set -- setsid "$@"; '
    'perfsuite_end() {{ kill -TERM -- "-$perfsuite_run"; }}; '
    'perfsuite_begun() {{ sh -c {timer} sh "$perfsuite_run" </dev/null >/dev/null 2>&1 3<&- & }}; fi ;; esac'
)

#: Ends the group of the process $1 past a limit; it looks every second whether that process is there still.
_TIMER = (
    "cd /proc/$1 || exit; i=0; while [ -e cmdline ]; do sleep 1; i=$((i+1)); "
    "case $i in {limit_s}) kill -TERM -- -$1 ;; {kill_s}) kill -KILL -- -$1 ;; esac; done"
)


def start_script(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the script that becomes a command."""
    return f"{_HOME}; exec {_words(command, environment)}"


def refuse_long(line: str | bytes) -> None:
    """Refuse a line that Linux does not take as one argument."""
    if len(line) > LONGEST_LINE_BYTES:
        raise DeviceError(
            f"a command for a device has {len(line)} bytes as it is sent, {LONGEST_LINE_BYTES} is the most; "
            "put what is long into a file"
        )


def one_line(script: str) -> str:
    """Return a script as one line of harmless characters, which every login shell gives to ``sh`` unchanged.

    A login shell need not be a POSIX one: fish has escapes in single quotes, tcsh expands ``!`` there and takes no
    line's end. So whatever is not plain is written in octal, and ``printf`` undoes it behind the login shell.
    """
    told = script.encode("utf-8", "surrogateescape")
    escaped = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in told)
    line = f'exec sh -c \'eval "$(printf "{escaped}")"\''
    refuse_long(line)
    return line


#: Relative paths begin at the home, over every link.
_HOME = 'cd "${HOME:-/}" 2>/dev/null'

#: Ends the command's input, waits for the end of the script's own, and then ends the script, the process $1, where it
#: is there still. The folder of a process that is gone is empty, even where another has its number by then. mksh keeps
#: a copy of what it closes, and so do its forks: only a program that takes a shell's place lets go of it.
_WATCH = """exec sh -c 'cat >/dev/null; [ ! -e cmdline ] || kill $1' sh "$1" >&-"""


def first_bytes(count: str) -> str:
    """Return what passes so many bytes of its input on and leaves the rest; ``head`` of Android 7 has no ``-c``."""
    return f"head -c {count} 2>/dev/null || dd bs=1 count={count} 2>/dev/null"


def _words(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the words that run a program; ``env`` sets those variables, too, that a shell keeps for itself."""
    _refuse_bad(command, environment)
    first, *others = command
    # `env` would take a program's name with '=' for one more variable.
    through = ["sh", "-c", quoted('exec "$0" "$@"')] if "=" in first else []
    program = '"$HOME"' + quoted(first[1:]) if first.startswith("~/") else quoted(first)
    variables = [quoted(f"{name}={text}") for name, text in environment.items()]
    return " ".join(["env", *variables, *through, program, *map(quoted, others)])


def _refuse_bad(command: Sequence[str], environment: Mapping[str, str]) -> None:
    if not command or not command[0] or command[0].startswith("-"):
        raise DeviceError(f"{' '.join(command)!r}: names no program to run on a device")
    for name in environment:
        if not _VARIABLE.fullmatch(name):
            raise DeviceError(
                f"{name!r}: no name of a variable; letters, digits and '_' are, not beginning with a digit"
            )
    for word in (*command, *environment.values()):
        if "\0" in word or re.search("[\ud800-\udc7f\udd00-\udfff]", word):
            raise DeviceError(f"{word!r}: holds a NUL or half a character, which no program's argument can")
