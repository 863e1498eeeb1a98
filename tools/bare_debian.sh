#!/usr/bin/env bash
# Runs a command in a clone of what is committed, in a bare Debian: Python, git, make and what the base system brings.
#
#   tools/bare_debian.sh 'make test'
#
# It needs root and Debian's debootstrap, and ends with 3 where there can be no such system. The base system is kept in
# the cache by the hash of its recipe, and never written to: what the command writes is thrown away. How this machine
# reaches the network is carried over, and so are llama.cpp as compiled for here and for Arm, Debian for arm64 and
# what pip has downloaded.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}
release=bookworm
packages=python3,python3-venv,git,make,ca-certificates
base=$cache/perfsuite/bare-debian/$(printf '%s\n' "$release" "$packages" 1 | sha256sum | cut -c 1-16)

say() { printf 'bare-debian: %s\n' "$*" >&2; }

unavailable() {
  say "$1"
  exit 3
}

make_base() {
  local log=$base.log part=$base.part
  command -v debootstrap >/dev/null || "$root/tools/apt_install.sh" debootstrap >/dev/null 2>&1 || unavailable "there is no debootstrap"
  say "making a base system, once: about a minute"
  mkdir -p "${base%/*}"
  rm -rf --one-file-system "${base%/*}"/*
  debootstrap --variant=minbase --include="$packages" "$release" "$part" "$("$root/tools/debian_mirror.sh")" >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    unavailable "debootstrap failed; the whole log is $log"
  }
  mv "$part" "$base"
}

# Runs a command over the base system; this process has mounts of its own.
run_inside() { # FOLDER COMMAND
  local work=$1/work new=$1/root home=$1/root/srv path name keep
  mkdir -p "$work" "$new" "$1/upper"
  mount -t overlay overlay -o "lowerdir=$base,upperdir=$1/upper,workdir=$work" "$new"
  for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/sources.list.d/debian.sources /etc/apt/apt.conf.d \
    /etc/ssl/certs /usr/local/share/ca-certificates /usr/share/keyrings; do
    if [ -e "$path" ]; then
      rm -rf "$new$path" && mkdir -p "$new$(dirname "$path")" && cp -aL "$path" "$new$(dirname "$path")/"
    fi
  done
  if [ -e "${HOME:-}/.config/pip" ]; then mkdir -p "$home/.config" && cp -aL "$HOME/.config/pip" "$home/.config/"; fi
  if [ -e "$new/etc/apt/sources.list.d/debian.sources" ]; then rm -f "$new/etc/apt/sources.list"; fi
  for path in /sys /dev; do mount --rbind "$path" "$new$path"; done
  mount -t proc proc "$new/proc"
  for path in perfsuite/wheels perfsuite/debian perfsuite/arm-root perfsuite/cross perfsuite/llama-sources pip; do
    mkdir -p "$cache/$path" "$home/.cache/$path"
    mount --bind "$cache/$path" "$home/.cache/$path"
  done
  git clone -q "$root" "$home/perfsuite"
  keep=(HOME=/srv "TERM=${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  while read -r name; do
    keep+=("$name=${!name}")
  done < <(compgen -e | grep -E '^(CI|PIP_.*|SSL_CERT.*|REQUESTS_CA.*|CURL_CA.*|https?_proxy|HTTPS?_PROXY|no_proxy|NO_PROXY)$')
  exec chroot "$new" /usr/bin/env -i "${keep[@]}" bash -c "cd /srv/perfsuite && $2"
}

if [ "${1:-}" = --inside ]; then run_inside "$2" "$3"; fi
[ $# = 1 ] || {
  say "usage: tools/bare_debian.sh 'COMMAND'"
  exit 2
}
[ "$(id -u)" = 0 ] || unavailable "it needs root"
unshare --mount true 2>/dev/null || unavailable "this machine allows no mounts of one's own"
mkdir -p "${base%/*}"
exec 7>"${base%/*}.lock"
flock 7
[ -d "$base" ] || make_base
flock -u 7
folder=$(mktemp -d /var/tmp/bare-debian.XXXXXX)
trap 'rm -rf --one-file-system "$folder"' EXIT
unshare --mount "${BASH_SOURCE[0]}" --inside "$folder" "$1" 7>&-
