#!/usr/bin/env bash
# Installs what the test boards are made of: Debian's sshd, network tools, libfaketime and adb, and the login shells that
# a board may have, where that needs no password. Says what is missing where it cannot; the tests on a board are then
# skipped, so this never fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

# What is looked for (a command, or a library), and Debian's name of the package that has it.
needed=(
  ssh openssh-client
  sshd openssh-server
  ip iproute2
  unshare util-linux
  libfaketimeMT.so.1 libfaketime
  adb adb
  busybox busybox
  fish fish
  mksh mksh
  tcsh tcsh
  zsh zsh
)

say() { printf 'boards: %s\n' "$*" >&2; }

has() {
  case $1 in
    *.so.*) [ -n "$(find /usr/lib -name "$1" -print -quit 2>/dev/null)" ] ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;; # Debian has sshd and ip in /usr/sbin
  esac
}

# shellcheck source=tools/debian_packages.sh
. tools/debian_packages.sh || exit 0
install_missing "some tests on a board are skipped" "${needed[@]}"
exit 0
