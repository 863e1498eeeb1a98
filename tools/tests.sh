#!/usr/bin/env bash
# Runs the suite's own tests with coverage. Those on boards and farms wait for daemons, links and limits most of their
# time: they run beside all the others, and what they say is printed after these.
#
#   tools/tests.sh                 everything
#   tools/tests.sh ARGUMENT ...    what pytest makes of the arguments, in one go
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# What waits more than it computes.
waiting=(
  tests/cli/test_devices*.py
  tests/cli/test_nightly.py
  tests/device
  tests/measure/board
  tests/nightly
  tests/plugin/test_board_options.py
  tests/plugin/test_farm_options.py
  tests/test_board*.py
  tests/test_compare_links.py
)

# A test that hangs ends its run with the stack of each thread: nobody waits for ever.
pytest=(.venv/bin/coverage run -m pytest -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true)

if [ $# -gt 0 ]; then
  exec "${pytest[@]}" "$@"
fi

log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"${pytest[@]}" "${waiting[@]}" >"$log" 2>&1 </dev/null &
beside=$!
"${pytest[@]}" "${waiting[@]/#/--ignore=}" tests </dev/null &
others=$!
trap 'wait; exit 130' INT # of a terminal, which both have heard as well
trap 'kill -INT "$beside" "$others" 2>/dev/null; wait; exit 143' TERM HUP
wait "$others"
status=$?
wait "$beside"
status_beside=$?
printf '\n'
cat "$log"
exit $((status > status_beside ? status : status_beside))
