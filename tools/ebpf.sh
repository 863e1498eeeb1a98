#!/usr/bin/env bash
# Installs what the helper of the eBPF recorder is compiled with, where that needs no password, and says what is missing
# where it does. Everything else works without it, so this never fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

# What is looked for (a command, or a header), and Debian's name of the package that has it.
needed=(
  clang clang
  bpftool bpftool
  bpf/libbpf.h libbpf-dev
  gelf.h libelf-dev
  zlib.h zlib1g-dev
)

say() { printf 'ebpf: %s\n' "$*" >&2; }

has() {
  case $1 in
    *.h) "${CC:-cc}" -E -x c - >/dev/null 2>&1 <<<"#include <$1>" ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;; # Debian has bpftool in /usr/sbin
  esac
}

# shellcheck source=tools/debian_packages.sh
. tools/debian_packages.sh || exit 0
install_missing "the eBPF recorder is not built" "${needed[@]}"
exit 0
