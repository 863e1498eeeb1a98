# Runs commands side by side over a console, which is one stream of text. For any POSIX shell: dash, busybox, mksh.
#
# A line to it: s CHANNEL HASH TEXT, a piece of a script; o CHANNEL, run that; i CHANNEL HASH TEXT, a piece of its input;
# c CHANNEL, the end of that; p, a sign of life; bye. A line from it: @TOKEN and r CHANNEL, it takes input; k CHANNEL, a
# piece was taken; o or e CHANNEL HASH TEXT, output or errors; x CHANNEL STATUS, its end; p; b CHANNEL, a piece came
# changed. TEXT is base64, HASH is what its SHA-256 begins with.
#
# $1  mux | channel | relay | pump | watch    $2  token    $3  bytes of output a line    $4 ...  of a channel
d=${0%/*}
part=$1 token=$2 chunk=$3 n=$4 kind=$5

# Tells one line whole: whoever writes takes the one empty line that is in the pipe `turn`, and puts it back.
say() {
  [ -p "$d/turn" ] || exit 0
  read -r turn <&8
  echo "@$token $*" >&9
  echo >&8
}

# The beginning of a text's hash, in `hash`.
hash_of() {
  hash=$(printf '%s' "$1" | sha256sum)
  hash=${hash%"${hash#????????????????}"}
}

part() {
  sh "$0" "$1" "$token" "$chunk" "$n" "$2"
}

# Each part opens these itself, for mksh keeps what it has opened from the programs that it starts.
if [ "$part" != mux ] && [ "$part" != watch ]; then
  [ -p "$d/turn" ] || exit 0
  read -r tty <"$d/tty"
  exec 8<>"$d/turn" 9>"$tty"
fi

case $part in
mux)
  mkfifo "$d/turn" && tty >"$d/tty" || exit 3
  exec 9>&1 8<>"$d/turn"
  echo >&8
  n=$$
  part watch </dev/null >/dev/null 2>&1 &
  say p
  while read -r verb n hash_told text; do
    : >"$d/alive"
    case $verb in
    s | i)
      hash_of "$text"
      if [ "$hash" != "$hash_told" ]; then say b "$n"; continue; fi
      case $verb in
      s) echo "$text" >>"$d/script.$n" && say k "$n" ;;
      i) [ ! -p "$d/in.$n" ] || echo "$text" 1<>"$d/in.$n" ;;
      esac
      ;;
    o) mkfifo "$d/in.$n" && part channel </dev/null & ;;
    c) [ ! -p "$d/in.$n" ] || echo c 1<>"$d/in.$n" ;;
    p) say p ;;
    bye) break ;;
    esac
  done
  for pipe in "$d"/in.*; do [ ! -p "$pipe" ] || echo c 1<>"$pipe"; done
  ;;
channel)
  script=$(while read -r text; do printf '%s' "$text" | base64 -d; done <"$d/script.$n")
  exec 7<>"$d/in.$n" # what is written into a pipe that nobody has open is lost, and a script may end before relay begins
  {
    part relay <>"$d/in.$n" 3>&- | {
      sh -c "$script" 2>&3 3>&- 7>&- 8>&- 9>&-
      echo $? >"$d/status.$n"
      echo c 1<>"$d/in.$n"
    } | part pump o 3>&-
  } 3>&1 | part pump e
  read -r status <"$d/status.$n"
  rm -f "$d/in.$n" "$d/script.$n" "$d/status.$n"
  say x "$n" "$status"
  ;;
relay)
  say r "$n"
  while read -r text && [ "$text" != c ]; do
    printf '%s' "$text" | base64 -d 2>/dev/null || break
    say k "$n"
  done
  ;;
pump)
  while text=$(dd bs="$chunk" count=1 2>/dev/null | base64) && [ -n "$text" ]; do
    set -- $text
    IFS=
    text="$*"
    unset IFS
    hash_of "$text"
    say "$kind" "$n" "$hash" "$text"
  done
  ;;
watch)
  while i=0; do
    while [ "$i" -lt 30 ]; do
      sleep 1
      [ -p "$d/turn" ] || exit 0
      i=$((i + 1))
    done
    if [ ! -e "$d/alive" ]; then
      for pipe in "$d"/in.*; do [ ! -p "$pipe" ] || echo c 1<>"$pipe"; done
      kill -KILL "$n"
      exit 0
    fi
    rm -f "$d/alive"
  done
  ;;
esac
