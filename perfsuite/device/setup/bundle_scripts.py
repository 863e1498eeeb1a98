"""What a board's shell does with bundles: ``sh``, ``cat``, ``mkdir``, ``mv``, ``rm``, ``ln``, ``wc``, ``sha256sum``.

In ``HOME/bundle`` each bundle has a folder by its digest, and ``current`` is a link to the one that is used. What is
being sent is in a folder that begins with ``.part-``, and becomes a bundle by one renaming.
"""

from __future__ import annotations

import shlex

from perfsuite.records.bundle import WORKER

#: Below ``home`` of a profile's ``[reach]``.
FOLDER, CURRENT, PART = "bundle", "current", ".part-"

#: With which a shell says that there is no such program, or that it cannot be run.
NO_PROGRAM = (126, 127)

#: What a device says that an earlier version has set up, by pip.
OLD_SETUP = "it was set up by an earlier version of perfsuite, in Python, by which no board is measured any more"

_COMMAND = f"""
home=$1; case $home in '~'|'~/'*) home=$HOME${{home#'~'}};; esac; shift
own="$home/{FOLDER}/{CURRENT}/{WORKER}"
if [ ! -x "$own" ] && [ -e "$home/venv" ]; then echo {shlex.quote(OLD_SETUP)} >&2; exit 127; fi
exec "$own" "$@"
"""


def suite_command(home: str, *words: str) -> tuple[str, ...]:
    """Return the command that becomes the program of a device's bundle, below the `home` of its ``[reach]``."""
    return ("sh", "-c", _COMMAND, "perfsuite", home, *words)


#: Holds ``$1/.setup`` as its own until its input ends, and says ``held`` once it has it, or who has it. The owner of
#: one is a process and the tick at which it started, so that one that lost its power is seen to be no more.
HOLD = r"""
started() { s=$(cat "/proc/$1/stat" 2>/dev/null) || return; s=${s##*) }; set -- $s; shift 19; echo "$1"; }
umask 022; mkdir -p "$1" || exit 3
l=$1/.setup
mine=$$-$(started $$)
if [ -f "$l/owner" ]; then
o=$(cat "$l/owner"); o=${o%% *}
[ "$(started "${o%-*}")" = "${o#*-}" ] || rm -rf "$l"
fi
if ! mkdir "$l" 2>/dev/null; then echo "taken $(cat "$l/owner" 2>/dev/null)"; exit 0; fi
trap 'rm -rf "$l"' EXIT; trap 'exit 3' HUP INT TERM
echo "$mine $2" >"$l/owner" || exit 3
echo held; cat >/dev/null
"""

#: Says which bundle is used, and of every file of the bundles in ``$1`` its hash, its size, whether it may be run, and
#: its path; and removes what earlier setups began.
STATE = r"""
cd "$1" 2>/dev/null || exit 0
rm -rf .part-* .old-*
c=$(readlink current 2>/dev/null) && echo "current $c"
for f in */* */*/*; do
case $f in current/*) continue ;; esac
[ -f "$f" ] || continue
h=$(sha256sum <"$f") || exit 3; n=$(wc -c <"$f") || exit 3; x=-; [ ! -x "$f" ] || x=x
echo "file ${h%% *} $((n)) $x $f"
done
"""

#: Makes files in ``$1`` out of those that are there: a line of the input is one that is, and what it is to be.
REUSE = r"""
cd "$1" || exit 3
while read -r from to; do
mkdir -p "${to%/*}" && { ln "$from" "$to" 2>/dev/null || cat "$from" >"$to"; } || exit 3
done
"""

#: Lets the folder ``$2`` of ``$1`` become the bundle ``$3``, which the link then leads to: its worker ``$4`` has to
#: run there first; what follows are its other programs. Bundles other than this and the one that was used before are
#: removed.
SWITCH = r"""
cd "$1" || exit 3
if [ "$2" ]; then
(cd "$2" && shift 3 && chmod 755 "$@") || exit 3
told=$("./$2/$4" --version 2>&1) || { echo "$told" >&2; exit 4; }
sync 2>/dev/null
[ ! -e "$3" ] || mv "$3" ".old-$3" || exit 3
mv "$2" "$3" || exit 3
fi
before=$(readlink current 2>/dev/null)
if [ "$before" != "$3" ]; then
rm -f .current.new; ln -s "$3" .current.new || exit 3
mv -fT .current.new current 2>/dev/null || { rm -f .current.new; rm -f current; ln -s "$3" current; } || exit 3
fi
sync 2>/dev/null
rm -rf .old-*
for d in *; do
case $d in "$3" | "$before" | current) ;; *) rm -rf "$d" ;; esac
done
echo "current $(readlink current)"
"""

#: Removes all that setup, of earlier versions too, has ever made in ``$1``, and the folder where nothing else is in it.
REMOVE = r"""
cd "$1" 2>/dev/null || exit 0
rm -rf bundle cache venv venvs incoming wheels setup.log || exit 3
cd / && rmdir "$1" 2>/dev/null
exit 0
"""
