#!/usr/bin/env bash
# Takes a newcomer's first ten minutes by the stopwatch: from 'git clone' to 'is my branch slower?', by the tutorial.
#
#   tools/newcomer.sh              in a bare Debian (tools/bare_debian.sh; root), on 2 processors
#   tools/newcomer.sh --prepare    only make the checkout of llama.cpp with the planted branch, in ~/llama.cpp
#
# Before the clock runs it makes ~/llama.cpp of the sources of llama-cpp-python: 'master' as they are, 'my-branch' with
# llamafile's kernels switched off, as one line of CMake does it by mistake. Then it clones what is committed, with an
# empty cache, and types the commands of docs/tutorial/first-run.md down to the comparison. The exit code is 0 where the
# answer is 'regressed' in time.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
page=docs/tutorial/first-run.md
limit_s=600

say() { printf 'newcomer: %s\n' "$*"; }

# The commands of the tutorial that give the first answer: those above 'Read the answer'.
commands() { sed -n '/^## .*Read the answer/q; s/^\$ //p' "$root/$page"; }

# Makes ~/llama.cpp: a repository with the branches that the tutorial names.
prepare() {
  local work requirement
  [ ! -e "$HOME/llama.cpp" ] || return 0
  requirement=$(sed -n 's/.*"\(llama-cpp-python==[^"; ]*\).*/\1/p' "$root/pyproject.toml" | head -n 1)
  work=$(mktemp -d)
  python3 -m venv "$work/venv"
  "$work/venv/bin/python" -m pip --disable-pip-version-check --no-input -q download --no-deps \
    --no-binary llama-cpp-python -d "$work" "$requirement"
  tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
  mv "$work"/llama_cpp_python-*/vendor/llama.cpp "$HOME/llama.cpp"
  rm -rf "$work"
  cd "$HOME/llama.cpp"
  rm -rf .git # the archive names the repository that it was a part of
  git init -q -b master
  git add -A -f
  commit "llama.cpp of $requirement"
  git checkout -q -b my-branch
  sed -i 's/set(GGML_LLAMAFILE_DEFAULT ON)/set(GGML_LLAMAFILE_DEFAULT OFF)/' CMakeLists.txt
  ! git diff --quiet || { say "CMakeLists.txt has no GGML_LLAMAFILE_DEFAULT to switch off" && exit 1; }
  git add CMakeLists.txt
  commit "without llamafile's kernels"
  git checkout -q master
}

commit() { git -c user.name=newcomer -c user.email=newcomer@localhost commit -q -m "$1"; }

# Types the commands in this shell, and says how long each took.
type_commands() {
  local command began=$SECONDS each status=0 log=$HOME/newcomer.log
  export XDG_CACHE_HOME=$HOME/newcomer-cache
  : >"$log"
  while read -r command; do
    each=$SECONDS status=0
    printf '$ %s\n' "$command"
    eval "$command" > >(tee -a "$log" | grep -E 'done in|compiled|measured in' || true) 2>&1 </dev/null || status=$?
    say "$((SECONDS - each)) s, exit code $status"
    [ "$status" -le 1 ] || break
  done < <(printf 'git clone -q %q %q && cd %q\n' "$root" "$HOME/clone" "$HOME/clone" && commands)
  wait
  took_s=$((SECONDS - began))
  say "the answer, after $took_s s (limit $limit_s s):"
  grep -A 1 -E '^ *regressed:' "$log" || tail -n 40 "$log"
  grep -q '^ *regressed: phase/' "$log" && [ "$took_s" -le "$limit_s" ]
}

case "${1:-}" in
  '') exec "$root/tools/bare_debian.sh" 'tools/newcomer.sh --inside' ;;
  --prepare) prepare ;;
  --inside)
    [ "$(nproc)" -le 2 ] || taskset -cp 0,1 $$ >/dev/null
    say "making ~/llama.cpp with a slow branch (off the clock)"
    (prepare)
    type_commands
    ;;
  *)
    say "usage: tools/newcomer.sh [--prepare]" >&2
    exit 2
    ;;
esac
