#!/usr/bin/env bash
# Builds the documentation into build/docs/html; every warning is an error, and a link or an anchor that is not there is
# a warning.
#
#   tools/docs.sh              build; nothing leaves this machine, but for the installation of Sphinx where it is missing
#   tools/docs.sh --external   look at the links to other places as well (network)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=.venv/bin/python

fail() {
  printf 'docs: %s\n' "$1" >&2
  exit 2
}

case "${1:-}" in
  '') external=no ;;
  --external) external=yes ;;
  *) fail "$1: accepted is --external" ;;
esac
[ -x "$python" ] || fail ".venv/ is missing; make env makes it"

"$python" -c 'import furo, myst_parser, sphinx' 2>/dev/null ||
  "$python" -m pip --disable-pip-version-check --no-input --quiet install --group docs

build() { "$python" -m sphinx -b "$1" -W --keep-going -q -d build/docs/doctrees docs "build/docs/$1"; }

build html
if [ "$external" = yes ]; then build linkcheck; fi
# Sphinx sees the pages of docs/ alone; this sees README.md, CONTRIBUTING.md and CHANGELOG.md as well.
"$python" -m pytest -q -p no:cacheprovider tests/test_docs_links.py
printf 'docs: build/docs/html/index.html\n'
