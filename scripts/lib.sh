# shellcheck shell=bash
# Sourced by the other scripts: where things are, how they speak, how they wait.
#
#   ROOT    the repository
#   CACHE   what scripts install and build once and keep (WAYSIDE_CACHE, default ~/.cache/wayside)

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${WAYSIDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/wayside}
mkdir -p "$CACHE"

# say TEXT: one line about what goes on, on standard error so that output stays clean.
say() { echo "${0##*/}: $*" >&2; }

# die TEXT: one line, then exit 1.
die() { say "$*"; exit 1; }

# usage: the comment at the head of the calling script, then exit 2.
usage() {
  awk 'NR == 1 { next } /^#/ { sub(/^# ?/, ""); print; next } { exit }' "$0" >&2
  exit 2
}

# need COMMAND [DEBIAN-PACKAGE]: makes sure that a command is there. As root on a Debian machine it is installed.
need() {
  command -v "$1" >/dev/null && return
  install_debian "${2:-$1}"
  command -v "$1" >/dev/null || die "$1 is missing: install the package ${2:-$1}"
}

# install_debian PACKAGE…: installs packages, one caller at a time; dies with apt's last words.
install_debian() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "$* missing: install it, or run as root on Debian"
  say "installing $*"
  (
    flock 9
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"
  ) 9>"$CACHE/apt.lock" >"$CACHE/apt.log" 2>&1 || { tail -5 "$CACHE/apt.log" >&2; die "apt-get could not install $*"; }
}

# listens HOST:PORT: does somebody accept connections there?
listens() {
  local host=${1%:*} port=${1##*:}
  timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$host" "$port" 2>/dev/null
}

# free_port: a port of the loopback interface that nobody uses, below the range that the kernel hands out by
# itself, so that no outgoing connection takes it meanwhile.
free_port() {
  local port
  for _ in $(seq 100); do
    port=$((15000 + (RANDOM * 32768 + RANDOM) % 15000))
    listens "127.0.0.1:$port" || { echo "$port"; return; }
  done
  die "no free port between 15000 and 30000"
}

# alive PID: does the process run?
alive() { [ -n "${1:-}" ] && kill -0 "$1" 2>/dev/null; }

# wait_until SECONDS COMMAND…: tries the command five times a second until it succeeds.
wait_until() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.2
  done
}

# end_process PID [SECONDS]: asks a process to end and waits for it; kills it when the time is over.
end_process() {
  alive "$1" || return 0
  kill "$1" 2>/dev/null || return 0
  wait_until "${2:-30}" not alive "$1" || kill -9 "$1" 2>/dev/null || true
}

not() { ! "$@"; }
