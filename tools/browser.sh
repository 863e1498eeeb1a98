#!/usr/bin/env bash
# Installs what the report is tested in: Debian's chromium with fonts, where that needs no password, and playwright and
# axe in .venv/. Says what is missing where it cannot; the tests in the browser are then skipped, so this never fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

# What is looked for (a command, or a file of a font), and Debian's name of the package that has it.
needed=(
  chromium chromium
  DejaVuSans.ttf fonts-dejavu-core
  NotoColorEmoji.ttf fonts-noto-color-emoji
)
fonts=/usr/share/fonts

say() { printf 'browser: %s\n' "$*" >&2; }

has() {
  case $1 in
    *.ttf) [ -n "$(find "$fonts" -name "$1" -print -quit 2>/dev/null)" ] ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# pip asks no index where everything is there already.
install_python_packages() {
  if [ ! -x .venv/bin/python ]; then
    say "there is no .venv/; run 'make env' first"
  elif ! .venv/bin/python -m pip --disable-pip-version-check --no-input install --group browser >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "pip failed; without the dependency group 'browser' the report is not tested in a browser"
  fi
}

log=$(mktemp) || exit 0
trap 'rm -f "$log"' EXIT
# shellcheck source=tools/debian_packages.sh
. tools/debian_packages.sh || exit 0
install_missing "the report is not tested in a browser" "${needed[@]}"
install_python_packages
exit 0
