# shellcheck shell=bash
# Sourced by the other scripts: where things are, how they speak, how they wait.
#
#   ROOT    the repository
#   CACHE   what scripts install and build once and keep (WAYSIDE_CACHE, default ~/.cache/wayside)

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${WAYSIDE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/wayside}
mkdir -p "$CACHE"

# Everything is built and tested with one Go, so that the same source gives the same bytes on any machine, and so that
# fixes of the standard library do not wait for the machine's own Go. Where it cannot be had, that one has to do.
if [ -z "${GOTOOLCHAIN:-}" ] && command -v go >/dev/null; then
  export GOTOOLCHAIN=go1.26.11
  go version >/dev/null 2>&1 || unset GOTOOLCHAIN
fi

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
    port=$((10000 + (RANDOM * 32768 + RANDOM) % 5000))
    listens "127.0.0.1:$port" || { echo "$port"; return; }
  done
  die "no free port between 10000 and 15000"
}

# alive PID: does the process run? One that has ended and that nobody has waited for does not; one of which only the
# first thread has ended does, and still holds its ports.
alive() {
  local threads
  [ -n "${1:-}" ] && kill -0 "$1" 2>/dev/null || return 1
  threads=("/proc/$1/task"/*)
  [ ${#threads[@]} -gt 1 ] || ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

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

# tool NAME MODULE-PATH@VERSION: prints the path of a Go program, built once for each Go and kept outside go.mod.
tool() {
  local name=$1 source=$2 place
  need go golang
  place=$CACHE/tools/$(go env GOVERSION)/${source##*@}
  (
    flock 9
    [ -x "$place/$name" ] || GOBIN=$place GOFLAGS='' go install "$source" >"$CACHE/tool-$name.log" 2>&1 ||
      { tail -5 "$CACHE/tool-$name.log" >&2; die "$source cannot be built"; }
  ) 9>"$CACHE/tool-$name.lock"
  echo "$place/$name"
}

# version: what this tree calls itself. A tree without git is "unreleased".
version() { git -C "$ROOT" describe --tags --always --dirty 2>/dev/null || echo unreleased; }

# commit: the commit of this tree, or "unknown".
commit() { git -C "$ROOT" rev-parse HEAD 2>/dev/null || echo unknown; }

# compile OUTPUT [LINKER-FLAGS [BUILD-ARGUMENTS]]: builds the product, the same bytes wherever the tree lies. GOOS,
# GOARCH and GOARM choose the platform, VERSION and COMMIT what it says of itself. HTTP/2, of which nothing here makes
# use, is left out: 0.45 MB.
compile() {
  need go golang
  (cd "$ROOT" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags nethttpomithttp2 "${@:3}" \
    -ldflags "${2:-} -X main.version=${VERSION:-$(version)} -X main.commit=${COMMIT:-$(commit)}" \
    -o "$1" ./cmd/wayside)
}

# serve BINARY FOLDER [SERVE-ARGUMENTS]: starts a broker on free ports with its data and log in FOLDER and waits until
# it is ready. Sets BROKER and ADMIN to its addresses, BROKER_PID to its process. LISTEN, if set, is the address to
# listen at, and RUNNER is put before the command.
serve() {
  local binary=$1 folder=$2
  shift 2
  BROKER=${LISTEN:-127.0.0.1:$(free_port)}
  ADMIN=127.0.0.1:$(free_port)
  mkdir -p "$folder"
  # shellcheck disable=SC2086
  ${RUNNER:-} "$binary" serve --data "$folder/data" --listen "$BROKER" --admin "$ADMIN" "$@" >"$folder/log" 2>&1 </dev/null &
  BROKER_PID=$!
  wait_until "${SERVE_SECONDS:-30}" ready_or_dead && alive "$BROKER_PID" && return
  tail -20 "$folder/log" >&2
  die "the broker did not become ready, see above"
}

ready_or_dead() { ! alive "$BROKER_PID" || answers "http://$ADMIN/readyz"; }

# answers URL: does it answer 200?
answers() {
  need curl
  [ "$(curl -s -m 5 -o /dev/null -w '%{http_code}' "$1" || true)" = 200 ]
}

new_seed() { echo $((RANDOM * 32768 + RANDOM)); }

# run_tests PREFIX LIMIT FOLDER…: runs the tests whose names begin with PREFIX, a pattern that grep -E and Go know, in
# those of the folders that hold Go packages, below them too. TEST_FLAGS are more arguments for go test.
run_tests() {
  local prefix=$1 limit=$2 d found=()
  shift 2
  need go golang
  for d in "$@"; do
    [ ! -d "$ROOT/$d" ] || mapfile -t -O ${#found[@]} found < <(cd "$ROOT" &&
      grep -rlE --include='*_test.go' "^func $prefix" "./$d" | xargs -r -n1 dirname | sort -u)
  done
  [ ${#found[@]} -gt 0 ] || die "no test begins with $prefix in $*"
  # shellcheck disable=SC2086
  (cd "$ROOT" && go test -count=1 -timeout "$limit" -run "^($prefix)" ${TEST_FLAGS:-} "${found[@]}") || return 1
}
