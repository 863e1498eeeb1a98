#!/usr/bin/env bash
# Installs what the helper of the eBPF recorder is compiled with, where that needs no password, and says what is missing
# where it does. Everything else works without it, so this never fails.
set -uo pipefail

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

find_missing() {
  local place
  packages=()
  for ((place = 0; place < ${#needed[@]}; place += 2)); do
    has "${needed[place]}" || packages+=("${needed[place + 1]}")
  done
}

find_missing
[ ${#packages[@]} -gt 0 ] || exit 0

apt=()
[ "$(id -u)" = 0 ] || apt=(sudo -n)
if ! command -v apt-get >/dev/null || { [ ${#apt[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; }; then
  say "without ${packages[*]} (Debian's names) the eBPF recorder is not built"
  exit 0
fi
say "installing ${packages[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${apt[@]}" apt-get update -q && "${apt[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
  --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 5 "$log" >&2
  say "apt-get failed; without ${packages[*]} the eBPF recorder is not built"
fi
exit 0
