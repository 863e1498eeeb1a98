#!/usr/bin/env bash
# Shows that programs do not notice the OpenCL tracing layer: clinfo and pyopencl's own tests, with it and without.
# It takes about five minutes, and fails where clinfo (Debian's package of that name) is not installed.
#
# PYTHON   interpreter that has perfsuite (default: that of .venv/)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python=${PYTHON:-$root/.venv/bin/python}
work=$(mktemp -d "${TMPDIR:-/tmp}/layer-transparency.XXXXXX")
trap 'rm -rf "$work"' EXIT

say() { printf 'layer-transparency: %s\n' "$*"; }

# Prints the layer's path, and the directory of the runtimes that the suite sees.
find_layer() {
  "$python" - <<'PYTHON'
from pathlib import Path
import platformdirs
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.environment import environment_opencl_vendors
from perfsuite.measure.opencl_backend import find_opencl_layers
cache = Path(platformdirs.user_cache_dir("perfsuite"))
vendors = opencl_environment(cache, inherited=environment_opencl_vendors()).get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors")
print(find_opencl_layers(cache).tracing, vendors)
PYTHON
}

# with|without COMMAND...
run() {
  local side=$1
  shift
  mkdir -p "$work/log"
  if [ "$side" = with ]; then
    OPENCL_LAYERS=$layer PERFSUITE_OPENCL_LOG=$work/log "$@"
  else
    "$@"
  fi
}

compare_clinfo() {
  command -v clinfo >/dev/null || { say "clinfo is not installed; apt-get install clinfo" >&2 && exit 1; }
  run without clinfo >"$work/clinfo.without" 2>&1
  run with clinfo >"$work/clinfo.with" 2>&1
  cmp "$work/clinfo.without" "$work/clinfo.with" && say "clinfo: $(wc -l <"$work/clinfo.with") lines, identical"
}

fetch_suite() {
  local version
  version=$("$python" -c 'import importlib.metadata as m; print(m.version("pyopencl"))')
  "$python" -m pip --disable-pip-version-check download -q --no-deps --no-binary pyopencl -d "$work" "pyopencl==$version"
  tar -xzf "$work"/pyopencl-*.tar.gz -C "$work"
  "$python" -m pip --disable-pip-version-check install -q --target "$work/lib" --no-deps mako markupsafe
}

# SIDE: writes the outcome of each test.
suite() {
  (cd "$work"/pyopencl-*/test && PYTHONPATH=$work/lib run "$1" "$python" -m pytest -q -rA --tb=no -p no:cacheprovider \
    -p no:perfsuite >"$work/suite.$1.log" 2>&1) || true
  grep -E '^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) ' "$work/suite.$1.log" | sed -e 's/ - .*//' -e 's/ at 0x[0-9a-f]*//' | sort >"$work/suite.$1"
  say "pyopencl's tests $1 the layer: $(tail -n 1 "$work/suite.$1.log")"
}

read -r layer OCL_ICD_VENDORS < <(find_layer)
export OCL_ICD_VENDORS PYOPENCL_NO_CACHE=1
compare_clinfo
fetch_suite
suite without
suite with
diff "$work/suite.without" "$work/suite.with" && say "each of $(wc -l <"$work/suite.with") outcomes is the same"
