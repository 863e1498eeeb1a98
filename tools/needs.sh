#!/usr/bin/env bash
# Installs what parts of the suite need beyond 'make env': Debian's packages where that needs no password, and Python's
# into .venv/. What cannot be had is one line each; whatever needs it is then skipped, so this never fails.
#
#   tools/needs.sh ebpf                          what the eBPF recorder is compiled with
#   tools/needs.sh audit                         what 'make lint' searches C and C++ with
#   tools/needs.sh opencl boards arm browser counting farm    what OpenCL's backend, test boards, Arm, pages, counted
#                                                work and farms are tested with
#
#   --system    Debian's packages alone      --python    Python's packages alone
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 0

# Of each part: what is lost without it; what is looked for (a command, a header, a library or a font) and Debian's name
# of the package that has it.
ebpf=("the eBPF recorder is not built"
  clang clang  bpftool bpftool  bpf/libbpf.h libbpf-dev  gelf.h libelf-dev  zlib.h zlib1g-dev  getcap libcap2-bin)
opencl=("there is no OpenCL backend of llama.cpp"
  CL/cl_layer.h opencl-headers  libOpenCL.so ocl-icd-opencl-dev)
boards=("there are no test boards, or not with every shell"
  ssh openssh-client  sshd openssh-server  ip iproute2  unshare util-linux  mount mount  libfaketimeMT.so.1 libfaketime
  adb adb  busybox busybox  fish fish  mksh mksh  groff groff-base  tcsh tcsh  toybox toybox  zsh zsh)
arm=("Arm is not tested, or not all of it"
  aarch64-linux-gnu-g++ g++-aarch64-linux-gnu  qemu-aarch64-static qemu-user-static  update-binfmts binfmt-support
  qemu-system-aarch64 qemu-system-arm  debootstrap debootstrap  busybox busybox)
browser=("the report is not tested in a browser"
  chromium chromium  DejaVuSans.ttf fonts-dejavu-core  NotoColorEmoji.ttf fonts-noto-color-emoji)
audit=("C and C++ are not searched for weaknesses" cppcheck cppcheck)
counting=("work is not counted") # all but zig is downloaded by the suite, or is there for Arm's tests
farm=("the farm is not tested")

say() { printf 'needs: %s\n' "$*" >&2; }

has() {
  case $1 in
    *.h) [ -e "/usr/include/$1" ] || "${CC:-cc}" -E -x c - >/dev/null 2>&1 <<<"#include <$1>" ;;
    *.so | *.so.*) [ -n "$(find /usr/lib /usr/lib64 -name "$1" -print -quit 2>/dev/null)" ] ;;
    *.ttf) [ -n "$(find /usr/share/fonts -name "$1" -print -quit 2>/dev/null)" ] ;;
    *) PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;; # Debian has sshd, ip and bpftool in /usr/sbin
  esac
}

# Prints the packages of what a part lacks.
lacking() {
  local -n part=$1
  local number
  for ((number = 1; number < ${#part[@]}; number += 2)); do
    has "${part[number]}" || printf '%s\n' "${part[number + 1]}"
  done
}

install_system_packages() {
  local parts=("$@") part packages apt=() log
  mapfile -t packages < <(for part in "${parts[@]}"; do lacking "$part"; done)
  [ ${#packages[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || apt=(sudo -n)
  if command -v apt-get >/dev/null && { [ ${#apt[@]} = 0 ] || sudo -n true 2>/dev/null; }; then
    say "installing ${packages[*]}"
    [ -e .venv ] || sleep 3 # 'make env', beside this, installs the compiler first
    log=$(mktemp) || return 0
    "$PWD/tools/apt_install.sh" "${packages[@]}" >"$log" 2>&1 </dev/null || tail -n 5 "$log" >&2
    rm -f "$log"
  fi
  for part in "${parts[@]}"; do
    mapfile -t packages < <(lacking "$part")
    local -n about=$part
    [ ${#packages[@]} = 0 ] || say "without ${packages[*]} (Debian's names) ${about[0]}"
  done
}

# Prints what an extra requires; pip would build the suite anew for '.[farm]'.
requirement() { sed -n "s/^$1 = \[\"\([^\"]*\)\"\].*/\1/p" pyproject.toml; }

# One call of pip, which asks no index where everything is there already.
install_python_packages() {
  local part wanted=() log
  for part; do
    case $part in
      browser) wanted+=(--group browser) ;;
      farm) .venv/bin/python -c 'import labgrid' 2>/dev/null || wanted+=("$(requirement farm)") ;;
      counting) .venv/bin/python -c 'import ziglang' 2>/dev/null || wanted+=("$(requirement zig)") ;;
    esac
  done
  [ ${#wanted[@]} -gt 0 ] || return 0
  log=$(mktemp) || return 0
  if [ ! -x .venv/bin/python ]; then
    say "there is no .venv/; run 'make env' first"
  elif ! .venv/bin/python -m pip --disable-pip-version-check --no-input install "${wanted[@]}" >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "pip failed; what needs ${wanted[*]} is not tested"
  fi
  rm -f "$log"
}

which=both
case "${1:-}" in --system | --python) which=${1#--} && shift ;; esac
for part; do
  case $part in ebpf | opencl | boards | arm | audit | browser | counting | farm) ;; *) say "no part called '$part'" && exit 2 ;; esac
done
[ "$which" = python ] || install_system_packages "$@"
[ "$which" = system ] || install_python_packages "$@"
exit 0
