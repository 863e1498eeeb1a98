#!/usr/bin/env bash
# Installs what the farm is tested with: labgrid with its coordinator and exporter in .venv/, as the extra 'farm' has
# it. Says what is missing where it cannot; the tests on a farm are then skipped, so this never fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

say() { printf 'farm: %s\n' "$*" >&2; }

log=$(mktemp) || exit 0
trap 'rm -f "$log"' EXIT

# What the extra requires, as pyproject.toml has it.
requirement=$(sed -n 's/^farm = \["\(.*\)"\]$/\1/p' pyproject.toml)

if [ ! -x .venv/bin/python ]; then
  say "there is no .venv/; run 'make env' first"
elif .venv/bin/python -c 'import labgrid' 2>/dev/null; then
  :
elif ! .venv/bin/python -m pip --disable-pip-version-check --no-input install "${requirement:-labgrid>=26.0}" \
  >"$log" 2>&1 </dev/null; then
  tail -n 5 "$log" >&2
  say "pip failed; without labgrid the farm is not tested"
fi
exit 0
