#!/usr/bin/env bash
# Runs the suite's own tests: those that measure nothing on all processors and in random order, those that measure after
# them, one by one.
#
#   tools/tests.sh                 all but the longest and those that measure
#   tools/tests.sh --long          those
#   tools/tests.sh --coverage      all of them, with the lines that each has run in .coverage
#   tools/tests.sh ARGUMENT ...    what pytest makes of the arguments, in one go (-k: in the files that have the word)
#
# What follows --long or --coverage is handed to pytest as well.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
python=.venv/bin/python
unset PYTHONDONTWRITEBYTECODE # the tests start many interpreters, and each would compile the suite anew
export PERFSUITE_TESTS_RUN=$$-$SECONDS-$RANDOM # what the tests leave behind is known by it

# A test that hangs ends its process with the stack of each thread: nobody waits for ever. What is skipped is listed.
pytest=("$python" -m pytest -rs -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true)
# One process more than processors, for some tests wait for boards and daemons.
side_by_side=(-n $(($(nproc) + 1)) --dist worksteal --random-order --random-order-seed="$RANDOM")

# Neighbours can make one test of 12,000 fail: at most three that failed run once more, alone, and are listed as unsteady.
steadily() { # PYTEST'S ARGUMENT ...
  local status failed cache
  cache=$(mktemp -d) || return
  "${pytest[@]}" -o cache_dir="$cache" "$@" </dev/null
  status=$?
  failed=$("$python" -m tests.failed_tests "$cache")
  rm -rf "$cache"
  if [ $status != 1 ] || [ -z "$failed" ]; then return $status; fi
  printf '\ntests: run once more, alone:\n%s\n' "$failed"
  mapfile -t failed <<<"$failed"
  "${pytest[@]}" "${failed[@]}" </dev/null || return 1
  printf 'tests: unsteady, failed once and passed alone: %s\n' "${failed[@]}"
}

end_what_is_left() { "$python" -m tests.left_processes; }
trap end_what_is_left EXIT

# The files whose tests have a mark: to collect all others as well takes longer than many of them.
marked() { grep -rlE "mark\.$1(_but_first)?\>" tests --include='test_*.py'; }

# For '-k WORD' or '-k "A or B"' alone, the files with one of the words, in any case: to collect all takes half a minute.
naming() { # PYTEST'S ARGUMENT ...
  [ $# = 2 ] && [ "$1" = -k ] && [[ ! $2 =~ (^|[ \(])not\  ]] || return 0
  local words
  words=$(grep -oE '[^ ()]+' <<<"$2" | grep -vxE 'and|or' | sed 's/[][\.*^$+?{}|]/\\&/g' | paste -sd '|')
  [ -n "$words" ] || return 0
  { grep -rliE --include='test_*.py' -- "$words" tests; find tests -name 'test_*.py' | grep -iE -- "$words"; } | sort -u
}

both() { # MARKS OF THOSE THAT MEASURE NOTHING [ARGUMENT ...]
  local marks=$1 wanted=("${@:2}") measuring=("${@:2}")
  if [ $# = 1 ]; then mapfile -t measuring < <(marked measures); fi
  if [ "$*" = long ]; then mapfile -t wanted < <(marked long); fi
  steadily -m "$marks and not measures" "${side_by_side[@]}" "${wanted[@]}"
  local status=$?
  steadily -m measures "${measuring[@]}"
  local second=$?
  # 5 is pytest's exit code where none is of the kind: a folder may have neither.
  [ $status != 5 ] || status=0
  [ $second != 5 ] || second=0
  return $((status > second ? status : second))
}

case ${1:-} in
  '') steadily -m "not long and not measures" "${side_by_side[@]}" ;;
  --long) both long "${@:2}" ;;
  --coverage)
    "$python" -m coverage erase
    pytest=("$python" -m coverage run "${pytest[@]:1}")
    both '(long or not long)' "${@:2}"
    status=$?
    "$python" -m coverage combine --quiet
    "$python" -m coverage report --fail-under=90 || status=1
    exit "$status"
    ;;
  *)
    mapfile -t files < <(naming "$@")
    "${pytest[@]}" "$@" "${files[@]}"
    ;;
esac
