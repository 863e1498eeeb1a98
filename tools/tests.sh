#!/usr/bin/env bash
# Runs the suite's own tests with coverage, in two halves side by side. In one are those on boards and farms, which wait
# for daemons, links and limits most of their time, and some that need nothing of the machine but time; in the other all
# that measure. What the first half says is printed after the second.
#
#   tools/tests.sh                 everything
#   tools/tests.sh ARGUMENT ...    what pytest makes of the arguments, in one go
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

beside=(
  tests/cli/test_devices*.py
  tests/cli/test_nightly.py
  tests/device
  tests/measure/board
  tests/native
  tests/nightly
  tests/plugin/test_board_options.py
  tests/plugin/test_farm_options.py
  tests/report
  tests/test_board*.py
  tests/test_browser_checks.py
  tests/test_compare_links.py
  tests/test_page*.py
)

# A test that hangs ends its run with the stack of each thread: nobody waits for ever. What is skipped is listed.
pytest=(.venv/bin/coverage run -m pytest -rs -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true)

if [ $# -gt 0 ]; then
  exec "${pytest[@]}" "$@"
fi

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"${pytest[@]}" "${beside[@]}" >"$log" 2>&1 </dev/null &
first=$!
"${pytest[@]}" "${beside[@]/#/--ignore=}" tests </dev/null &
second=$!
trap 'wait; exit 130' INT # of a terminal, which both have heard as well
trap 'kill -INT "$first" "$second" 2>/dev/null; wait; exit 143' TERM HUP
wait "$second"
status=$?
wait "$first"
status_first=$?
printf '\n'
cat "$log"
exit $((status > status_first ? status : status_first))
