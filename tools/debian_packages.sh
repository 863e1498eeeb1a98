# shellcheck shell=bash
# Sourced by what installs Debian's packages where that needs no password, and says what is missing where it does.
# Whoever sources this has a `has` of its own, which says whether something is there already, and a `say`.

# Installs the packages of what is missing: `install_missing "what is lost without them" THING PACKAGE ...`, in pairs of
# what `has` looks for and Debian's name of the package that has it. Never fails.
install_missing() {
  local lost=$1 apt=() packages=() log
  shift
  while [ $# -ge 2 ]; do
    has "$1" || packages+=("$2")
    shift 2
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || apt=(sudo -n)
  if ! command -v apt-get >/dev/null || { [ ${#apt[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; }; then
    say "without ${packages[*]} (Debian's names) $lost"
    return 0
  fi
  say "installing ${packages[*]}"
  log=$(mktemp) || return 0
  if ! { "${apt[@]}" apt-get update -q && "${apt[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
    --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "apt-get failed; without ${packages[*]} $lost"
  fi
  rm -f "$log"
}
