#!/usr/bin/env bash
# Installs Debian's packages by apt-get, as root or with a sudo that asks for no password; waits for another installation.
#
#   tools/apt_install.sh PACKAGE ...
set -euo pipefail
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
# The lists' lock makes apt-get fail where others make it wait.
cache=${XDG_CACHE_HOME:-${HOME:-build}/.cache}/perfsuite
mkdir -p "$cache"
exec 8>"$cache/apt.lock"
flock -w 600 8
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q \
  --no-install-recommends "$@" 8>&-
