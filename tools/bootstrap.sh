#!/usr/bin/env bash
# Makes .venv/ at the root of the checkout: perfsuite (editable) with its extras, and the dependency group 'dev'.
# Left out are the extras 'farm' (tools/needs.sh installs it for the tests) and 'zig' (300 MB).
#
#   tools/bootstrap.sh               make .venv/, or bring it up to date; nothing changed: nothing done, no network
#   tools/bootstrap.sh --wheel-dir   print the directory that keeps llama-cpp-python as compiled for this machine
#
# PYTHON                       interpreter (default: the one that .venv/ has, else the first on PATH that is new enough)
# CMAKE_ARGS                   how llama.cpp is compiled; another value is another wheel in the cache
# CMAKE_BUILD_PARALLEL_LEVEL   compile jobs (default: the number of cores)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/perfsuite
venv=$root/.venv
extras=benchmark,history,opencl,s3,shapes
state=$venv/.perfsuite # made: root and interpreter; busy: an installation is under way; stamp: what is installed
temporary= # the directory that a wheel is being made in
job=       # the process group that is running

say() { printf 'env: %s\n' "$*"; }
fail() { # MESSAGE [LINE TO COPY]
  say "$1" >&2
  [ $# = 1 ] || printf '%s\n' "$2" >&2
  exit 1
}

digest() { sha256sum | cut -c 1-16; }

# --- What the environment depends on ----------------------------------------------------------------------------------

# Prints the interpreter's real path and its version, for any Python from 2.7 on.
describe_python() {
  "$1" -c 'import os, sys; print("%s %d.%d" % ((os.path.realpath(sys.executable),) + sys.version_info[:2]))' 2>/dev/null
}

new_enough() { [[ $1 =~ ^3\.([0-9]+)$ ]] && ((BASH_REMATCH[1] >= 10)); }

# Sets 'python' (a path outside .venv/, which may be made anew) and 'python_version'.
find_python() {
  local candidates=("$venv/bin/python" python3 python3.{14..10}) candidate found seen=''
  [ -z "${PYTHON:-}" ] || candidates=("$PYTHON")
  for candidate in "${candidates[@]}"; do
    found=$(describe_python "$candidate") || continue
    python=${found% *} python_version=${found##* }
    if new_enough "$python_version"; then return; fi
    seen="$seen, $candidate is $python_version"
  done
  fail "Python 3.10 or newer is needed${seen:-, ${PYTHON:-python3} does not run}; name one: PYTHON=/path/to/python3.12 make env"
}

# The pin stands in pyproject.toml alone.
llama_requirement() { sed -n 's/.*"\(llama-cpp-python==[^"; ]*\).*/\1/p' pyproject.toml | head -n 1; }

# The wheel is compiled for the very CPU (GGML_NATIVE): on a home that machines share, each kind of CPU has its own.
wheel_dir() {
  local requirement key
  requirement=$(llama_requirement)
  key=$({
    printf '%s\n' "${CMAKE_ARGS:-}" "${CC:-}" "${CXX:-}" "${CFLAGS:-}" "${CXXFLAGS:-}"
    getconf GNU_LIBC_VERSION || true
    grep -E '^(flags|Features|CPU (implementer|part))' /proc/cpuinfo | sort -u || true
    ! grep -qw amx_int8 /proc/cpuinfo || echo 'since AMX is left out where it crashes'
  } 2>/dev/null | digest)
  printf '%s/wheels/%s-%s-%s\n' "$cache" "${requirement##*=}" "$(uname -m)" "$key"
}

# Native sources are compiled at installation; Python sources are read in place (editable) and do not count.
fingerprint() {
  {
    printf '%s\n' "$identity" "$wheels"
    sha256sum pyproject.toml tools/bootstrap.sh
    [ ! -d native ] || find native share -path native/tests -prune -o -type f ! -name '.*' -print0 | sort -z | xargs -0r sha256sum
  } | digest
}

up_to_date() { [ ! -e "$state/busy" ] && [ "$(cat "$state/stamp" 2>/dev/null)" = "$(fingerprint)" ]; }

# --- Running long commands --------------------------------------------------------------------------------------------

clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# Reduces a growing log on stdin to one live line on a terminal, to a line every 15 s elsewhere.
follow() {
  local label=$1 line note text began=$SECONDS compile_began=0 shown=-15
  while IFS= read -r line; do
    if [[ $line =~ \[([0-9]+)/([0-9]+)\] ]]; then # ninja
      ((compile_began)) || compile_began=$((SECONDS ? SECONDS : 1))
      note="step ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
      ((BASH_REMATCH[1] < 10)) ||
        note+=", about $(clock $(((SECONDS - compile_began) * (BASH_REMATCH[2] - BASH_REMATCH[1]) / BASH_REMATCH[1]))) left"
    elif [[ $line =~ \[\ *([0-9]+%)\] ]]; then # make
      note=${BASH_REMATCH[1]}
    elif [[ $line =~ ^\ *((Collecting|Downloading|Installing|Building|Preparing)\ .*) ]]; then # pip
      note=${BASH_REMATCH[1]}
    else
      continue
    fi
    text="env: $label, $(clock $((SECONDS - began))): $note"
    if [ -t 1 ]; then
      printf '\r\033[K%.78s' "$text"
    elif ((SECONDS - shown >= 15)); then
      shown=$SECONDS
      printf '%.118s\n' "$text"
    fi
  done
  [ ! -t 1 ] || printf '\r\033[K'
}

# run LABEL COMMAND...: the whole output goes to a log in the cache; its end is shown when the command fails.
# The command runs in a process group of its own, so that an interruption ends its compilers too.
run() {
  local label=$1 log=$cache/logs/${1//[^a-z0-9.]/-}.log began=$SECONDS
  shift
  mkdir -p "$cache/logs"
  set -m
  { "$@" 2>&1 </dev/null 9>&- | tee "$log" | follow "$label"; } &
  job=$!
  set +m
  if ! wait "$job"; then
    tail -n 30 "$log" | sed 's/^/    /' >&2
    fail "$label failed; the whole log is $log"
  fi
  job=
  say "$label: done in $(clock $((SECONDS - began)))"
}

# Leaves 'busy' behind, and nothing else that is half made.
interrupted() {
  trap - EXIT
  [ -z "$job" ] || { kill -TERM -- "-$job" && wait "$job"; } 2>/dev/null || true
  rm -rf "$temporary"
  printf '\n' >&2
  fail "interrupted"
}

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }

# --- The steps --------------------------------------------------------------------------------------------------------

# Sets 'packages' to what apt-get has to install, and 'optional' to what only OpenCL's layers and backend need, and what
# makes the compile of a second revision of llama.cpp quick.
find_missing_packages() {
  local compiler
  packages=() optional=()
  for compiler in "${CC:-cc}" "${CXX:-c++}"; do
    command -v "${compiler%% *}" >/dev/null || packages=(g++)
  done
  "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=("python$python_version-venv")
  [ -e /usr/include/CL/cl_layer.h ] || optional+=(opencl-headers)
  [ -n "$(compgen -G '/usr/lib*/*/libOpenCL.so')$(compgen -G '/usr/lib*/libOpenCL.so')" ] || optional+=(ocl-icd-opencl-dev)
  command -v ccache >/dev/null || optional+=(ccache)
}

can_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

install_system_packages() {
  find_missing_packages
  if [ ${#packages[@]} = 0 ] && ! can_install; then
    [ -z "$(printf '%s\n' "${optional[@]}" | grep -v ccache)" ] ||
      say "without opencl-headers and ocl-icd-opencl-dev (Debian's names) there is no tracing of OpenCL commands"
    return 0
  fi
  packages+=("${optional[@]}")
  [ ${#packages[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    fail "missing: ${packages[*]} (Debian's names); install them with this system's package manager, then run make again"
  elif can_install; then
    run "installing ${packages[*]}" tools/apt_install.sh "${packages[@]}"
  else
    fail "missing: ${packages[*]}; run this, then make again:" \
      "    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages[*]}"
  fi
}

# A virtual environment whose making or filling was cut short is thrown away.
# Dependency groups need pip 25.1; the pip that comes with Python may be older.
make_venv() {
  if [ -e "$state/busy" ] || [ "$(cat "$state/made" 2>/dev/null)" != "$identity" ]; then
    rm -rf "$venv"
    mkdir -p "$state"
    run "making .venv with Python $python_version" "$python" -m venv "$venv"
    run "updating pip" pip install --upgrade 'pip>=25.1'
    printf '%s\n' "$identity" >"$state/made"
  fi
}

# Says whether the compiler drops most of the tile configuration that ggml loads, because its header has the instruction
# read 8 of the 64 bytes (GCC 12.2 does): llama.cpp then crashes at its first product on a processor with AMX
# (llama.cpp's issue 20824 and pull request 26954).
breaks_amx() {
  local macros header
  macros=$(${CXX:-c++} -march=native -dM -E -x c++ - </dev/null 2>/dev/null) || return 1
  [[ $macros == *__AMX_INT8__* ]] || return 1
  header=$(${CXX:-c++} -march=native -E -x c++ - <<<'#include <immintrin.h>' 2>/dev/null) || return 1
  [[ $header =~ ldtilecfg[^\;]*const\ void\ \*\* ]]
}

# Without pip's own cache, which would hand out a wheel that was compiled with other CMAKE_ARGS.
compile_llama() {
  [ -z "$(compgen -G "$wheels/*.whl")" ] || return 0
  rm -rf "$wheels" "$cache"/wheels/.building.*
  mkdir -p "$cache/wheels"
  temporary=$(mktemp -d "$cache/wheels/.building.XXXXXX")
  case ${CMAKE_ARGS:-} in
    *LLAMA_BUILD=OFF*) say "without a llama.cpp of its own: name yours, as 'perfsuite compare' does" ;;
    *) say "compiling $(llama_requirement), once for this machine: about 5 minutes on 2 cores" ;;
  esac
  if breaks_amx; then
    say "without AMX, which ${CXX:-c++} compiles wrongly; a newer compiler keeps it: CC=... CXX=... make env"
    local -x CFLAGS="${CFLAGS:-} -U__AMX_INT8__" CXXFLAGS="${CXXFLAGS:-} -U__AMX_INT8__"
  fi
  CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)} run "compiling llama.cpp" \
    pip wheel -v --no-deps --no-cache-dir --no-binary llama-cpp-python -w "$temporary" "$(llama_requirement)"
  mv "$temporary" "$wheels"
}

# The link .venv/wheels tells which wheel is installed, and tox where to find it.
install_llama() {
  [ "$(readlink "$venv/wheels")" != "$wheels" ] || return 0
  run "installing llama-cpp-python" pip install --no-deps --force-reinstall --no-index "$wheels"/*.whl
  ln -sfn "$wheels" "$venv/wheels"
}

# The build backend lies in .venv/ too, so that a change to native/ is compiled in place and without the network.
install_perfsuite() {
  local backend
  read -ra backend < <(sed -n 's/^requires = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",')
  run "installing dependencies" pip install "${backend[@]}" --group dev
  run "installing perfsuite" pip install --find-links "$wheels" --only-binary llama-cpp-python --no-build-isolation -e ".[$extras]"
}

make_environment() {
  local stamp
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock -n 9 || { say "waiting for another make env" && flock 9; }
  if up_to_date; then return; fi
  [ ! -e "$venv" ] || [ -d "$state" ] || fail ".venv/ was not made by 'make env'; move it away, then run make again"

  stamp=$(fingerprint) # before the installation: what is edited meanwhile counts as changed
  rm -f "$state/stamp"
  # A step that fails leaves .venv/ usable, for pip rolls back; only an interrupted one leaves 'busy' behind.
  trap 'rm -rf "$temporary" "$state/busy"' EXIT
  trap interrupted INT TERM HUP
  install_system_packages
  make_venv
  compile_llama
  touch "$state/busy"
  install_llama
  install_perfsuite
  printf '%s\n' "$stamp" >"$state/stamp"
  say "ready: .venv (Python $python_version)"
}

wheels=$(wheel_dir)
if [ "${1:-}" = --wheel-dir ]; then
  printf '%s\n' "$wheels"
  exit
fi
find_python
identity="$root $python $python_version"
up_to_date || make_environment
