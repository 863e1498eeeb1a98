#!/usr/bin/env bash
# Makes llama.cpp's OpenCL backend for the installed engine and prints its folder; made once, nothing is done again.
#
#   tools/opencl_backend.sh                the folder of libggml-opencl.so
#   tools/opencl_backend.sh --profiling    the same, of a backend that writes cl_profiling.csv into its working directory
#
# The backend is compiled from the source of the engine's own release and loaded at run time: the engine stays as it is.
# Debian's opencl-headers and ocl-icd-opencl-dev are needed; they are installed where that needs no password.
#
# PYTHON   interpreter that has llama-cpp-python (default: that of .venv/)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python=${PYTHON:-$root/.venv/bin/python}
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}/perfsuite

say() { printf 'opencl-backend: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

# Prints the version of the package, the engine's folder, and its build id.
describe_engine() {
  "$python" - <<'PYTHON' 2>/dev/null
import importlib.metadata
from perfsuite.measure.environment import environment_engine
engine = environment_engine()
print(importlib.metadata.version("llama-cpp-python"), engine.build_id, engine.library_dir)
PYTHON
}

has_headers() { "${CC:-cc}" -E -x c - >/dev/null 2>&1 <<<'#include <CL/cl_layer.h>'; }
has_library() { "${CC:-cc}" -shared -o /dev/null -x c - -lOpenCL >/dev/null 2>&1 <<<''; }

install_packages() {
  if has_headers && has_library; then return; fi
  "$root/tools/needs.sh" --system opencl
  has_headers && has_library || fail "OpenCL's headers and loader are missing"
}

fetch_source() {
  say "downloading the source of llama-cpp-python $version"
  "$python" -m pip --disable-pip-version-check --no-input download -q --no-deps --no-build-isolation \
    --no-binary llama-cpp-python -d "$work" "llama-cpp-python==$version" >"$work/pip.log" 2>&1 ||
    { tail -n 20 "$work/pip.log" >&2 && fail "the source cannot be had"; }
  tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work" --strip-components=1 --wildcards '*/vendor/llama.cpp/ggml/*'
}

# NAME PROFILING
compile() {
  say "compiling the OpenCL backend ($1), about 20 s"
  nice -n 10 "$bin/cmake" -S "$root/native/opencl_backend" -B "$work/$1" -G Ninja \
    -DCMAKE_MAKE_PROGRAM="$bin/ninja" -DGGML_OPENCL_PROFILING="$2" \
    -DLLAMA_CPP_SOURCE="$work/vendor/llama.cpp" -DLLAMA_CPP_LIBRARY_DIR="$libraries" >"$work/$1.log" 2>&1 &&
    nice -n 10 "$bin/cmake" --build "$work/$1" >>"$work/$1.log" 2>&1 ||
    { tail -n 30 "$work/$1.log" >&2 && fail "the backend does not build"; }
  mkdir -p "$work/made/$1"
  cp "$work/$1/libggml-opencl.so" "$work/made/$1/"
}

make_backend() {
  work=$(mktemp -d "$cache/.opencl-backend.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  install_packages
  fetch_source
  compile plain OFF
  compile profiling ON
  rm -rf "$folder"
  mv "$work/made" "$folder"
}

described=$(describe_engine) || fail "llama-cpp-python or perfsuite is not installed for $python; run 'make env'"
read -r version build libraries <<<"$described"
bin=$(dirname "$python")
folder=$cache/opencl-backend-$build
mkdir -p "$cache"
exec 9>"$cache/opencl-backend.lock"
flock 9
[ -e "$folder/profiling/libggml-opencl.so" ] || make_backend
[ "${1:-}" = --profiling ] && echo "$folder/profiling" || echo "$folder/plain"
