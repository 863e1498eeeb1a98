#!/usr/bin/env bash
# Installs the suite into a fresh environment for the base and for each extra that is named; prints packages and MB.
#
#   tools/install_size.sh                       the base alone
#   tools/install_size.sh '' opencl all   the base, and the base with each of these extras
#
# llama-cpp-python is taken from where 'make env' keeps it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheels=$("$root/tools/bootstrap.sh" --wheel-dir)

pip() { "$work/$1/bin/python" -m pip --disable-pip-version-check --no-input "${@:2}"; }

python3 -m venv "$work/wheel"
pip wheel wheel -q --no-deps -w "$work" "$root" >&2
[ $# -gt 0 ] || set -- ''
for extra; do
  python3 -m venv "$work/env"
  pip env install -q --find-links "$wheels" --only-binary llama-cpp-python \
    "$(echo "$work"/perfsuite-*.whl)${extra:+[$extra]}" >&2
  packages=$(pip env list --format=freeze | wc -l)
  printf '%-10s %3d packages %5d MB\n' "${extra:-base}" "$packages" "$(du -sm "$work/env" | cut -f 1)"
  rm -rf "$work/env"
done
