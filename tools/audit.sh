#!/usr/bin/env bash
# Looks for what an attacker could use: bandit in Python, cppcheck in C and C++, both at once and without the network.
# Which rules are left out, and why, stands in pyproject.toml and beside each line that is excused.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

in_python() {
  # one process for each processor; bandit warns of a 'nosec' for each part of the line that needs none
  find perfsuite tools -name '*.py' -print0 | xargs -0 -n 150 -P "$(nproc)" .venv/bin/bandit -q -c pyproject.toml \
    2> >(grep -v 'nosec encountered' >&2)
}

in_c() {
  if ! command -v cppcheck >/dev/null; then
    printf 'SKIPPED C and C++: no cppcheck; install it, or run tools/needs.sh audit\n'
    return 0
  fi
  mkdir -p build/cppcheck # what has not changed is not looked at again
  cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr --cppcheck-build-dir=build/cppcheck \
    -j "$(nproc)" --std=c11 --std=c++17 -I native/include -I native/src -i native/bpf/probes.bpf.c \
    '-DLIBBPF_OPTS(type,name,...)=struct type name' native/src native/bpf
}

in_c &
second=$! # what 'in_python' starts beside itself would take this name
in_python
status=$?
wait "$second" || status=1
exit "$status"
