#!/usr/bin/env bash
# Fetches the scripts that draw the report's charts from the npm registry again, into perfsuite/report/page/vendor/.
#
#   tools/vendor_charts.sh           fetch the versions of VERSIONS.json; fails where a file differs from its hash there
#   tools/vendor_charts.sh --update  fetch the versions of VERSIONS.json and write the hashes of what came
#
# The one way to update: write the new version into VERSIONS.json, run with --update, look at the report in a browser,
# and commit the files together with VERSIONS.json. Files are kept as they are published.
#
# Needs npm (only to fetch; the suite itself needs no JavaScript outside of the browser) and PYTHON (default: python3).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
vendor=$root/perfsuite/report/page/vendor
python=${PYTHON:-python3}
mode=${1:-}

say() { printf 'vendor-charts: %s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

[ -z "$mode" ] || [ "$mode" = --update ] || fail "$mode: is no option; --update is the only one"
command -v npm >/dev/null || fail "npm is not installed; install Node.js"
command -v "$python" >/dev/null || fail "$python is not installed; set PYTHON"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints a line for each file: package, version, path in the package, name in the folder.
listed_files() {
  "$python" - "$vendor/VERSIONS.json" <<'END'
import json, sys
for package, entry in json.load(open(sys.argv[1], encoding="utf-8")).items():
    for name, file in entry["files"].items():
        print(package, entry["version"], file["source"], name)
END
}

fetch_package() {
  local package=$1 version=$2
  [ -d "$scratch/$package" ] && return
  mkdir -p "$scratch/$package"
  say "fetching $package $version"
  (cd "$scratch" && timeout 120 npm pack --silent "$package@$version" >/dev/null) ||
    fail "$package@$version cannot be fetched from the npm registry; check the version and the network"
  tar -xzf "$scratch/$package-$version.tgz" -C "$scratch/$package"
}

while read -r package version source name; do
  fetch_package "$package" "$version" </dev/null
  [ -e "$scratch/$package/package/$source" ] || fail "$package $version has no $source; change VERSIONS.json"
  mkdir -p "$scratch/new"
  cp "$scratch/$package/package/$source" "$scratch/new/$name"
done < <(listed_files)

"$python" - "$vendor/VERSIONS.json" "$scratch/new" "$mode" <<'END'
import hashlib, json, pathlib, shutil, sys

versions, fetched, mode = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
plain = json.loads(versions.read_text("utf-8"))
for package, entry in plain.items():
    for name, file in entry["files"].items():
        seen = hashlib.sha256((fetched / name).read_bytes()).hexdigest()
        if mode != "--update" and seen != file["sha256"]:
            sys.exit(f"vendor-charts: {name} of {package} {entry['version']}: sha256 is {seen}, "
                     f"VERSIONS.json has {file['sha256']}; --update takes a version over")
        file["sha256"] = seen
        shutil.copyfile(fetched / name, versions.parent / name)
versions.write_text(json.dumps(plain, indent=2) + "\n", "utf-8")
END
say "perfsuite/report/page/vendor/ is as published"
