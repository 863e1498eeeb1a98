#!/usr/bin/env bash
# Makes llama-bench for the installed llama-cpp-python and prints its path; made once, nothing is done again.
#
#   tools/llama_bench.sh             print the path of llama-bench
#   tools/llama_bench.sh --script    print the path of llama.cpp's compare-llama-bench.py of the same release
#
# llama-bench itself is compiled from the source of the same release and linked with the shared libraries that the
# package brings: both sides of a comparison run the very same engine.
#
# PYTHON   interpreter that has llama-cpp-python (default: that of .venv/)
# CXX      compiler (default: c++)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python=${PYTHON:-$root/.venv/bin/python}
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/perfsuite

say() { printf 'llama-bench: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# Prints the version and the folder of the package's Python sources.
describe_package() {
  "$python" -c 'import importlib.metadata as m, importlib.util as u, os
print(m.version("llama-cpp-python"), os.path.dirname(u.find_spec("llama_cpp").origin))' 2>/dev/null
}

find_package() {
  local found
  found=$(describe_package) || fail "llama-cpp-python is not installed for $python; run 'make env' or set PYTHON"
  version=${found%% *} package=${found#* }
  # The engine as perfsuite loads it, then llama.cpp's library of its tools, which is installed beside the package.
  engine=$package/lib shared=${package%/*}/lib
  [ -e "$engine/libllama.so" ] || fail "$engine: libllama.so is not there; a static build cannot be shared"
  [ -e "$shared/libllama-common.so" ] || fail "$shared: libllama-common.so is not there; reinstall llama-cpp-python"
}

# The library of the tools changes with the release, and so does what llama-bench asks of it: only its own source fits.
fetch_source() {
  say "downloading the source of llama-cpp-python $version"
  "$python" -m pip --disable-pip-version-check --no-input download -q --no-deps --no-binary llama-cpp-python \
    -d "$work" "llama-cpp-python==$version" >&2
  tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work" --strip-components=1 --wildcards \
    '*/vendor/llama.cpp/common/*' '*/vendor/llama.cpp/include/*' '*/vendor/llama.cpp/ggml/include/*' \
    '*/vendor/llama.cpp/vendor/nlohmann/*' '*/vendor/llama.cpp/tools/llama-bench/*' \
    '*/vendor/llama.cpp/scripts/compare-llama-bench.py'
}

compile() {
  local source=$work/vendor/llama.cpp
  say "compiling llama-bench, about 15 s"
  nice -n 19 "${CXX:-c++}" -std=c++17 -O3 -DNDEBUG \
    -I "$source/common" -I "$source/include" -I "$source/ggml/include" -I "$source/vendor" \
    "$source"/tools/llama-bench/*.cpp -o "$work/llama-bench" \
    -L "$engine" -L "$shared" -lllama -lggml -lggml-cpu -lggml-base -lllama-common -pthread \
    -Wl,-rpath,"$engine:$shared" >&2 || fail "the compiler failed; is it of the package's own release, $version?"
  "$work/llama-bench" --version >&2 || fail "what was compiled does not start"
}

make_llama_bench() {
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/.llama-bench.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fetch_source
  compile
  rm -rf "$folder"
  mkdir "$folder"
  mv "$work/llama-bench" "$work/vendor/llama.cpp/scripts/compare-llama-bench.py" "$folder"
  printf '%s\n' "$engine" >"$folder/engine"
}

find_package
folder=$cache/llama-bench-$version
[ "$(cat "$folder/engine" 2>/dev/null)" = "$engine" ] || make_llama_bench
case ${1:-} in
'') printf '%s\n' "$folder/llama-bench" ;;
--script) printf '%s\n' "$folder/compare-llama-bench.py" ;;
*) fail "$1: unknown; accepted is --script, or nothing" ;;
esac
