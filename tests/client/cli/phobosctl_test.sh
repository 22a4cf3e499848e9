#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# phobosctl as a process: exit statuses, and a real daemon's answers in both formats.
set -euo pipefail
phobosctl=$1
phobosd=$2
compiler=$3
failed=0
folder=$(mktemp -d /tmp/phobos-test-XXXXXX) # short: a socket's path has 107 bytes at most
socket=$folder/s
export PHOBOS_SOCKET=$socket

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

expect() { # expect STATUS PATTERN ARGUMENTS...
  local want=$1 pattern=$2 got=0
  shift 2
  "$phobosctl" "$@" >"$folder/out" 2>&1 || got=$?
  [ "$got" = "$want" ] || fail "phobosctl $* ended with $got, not $want: $(cat "$folder/out")"
  grep -qE "$pattern" "$folder/out" || fail "phobosctl $* did not say /$pattern/: $(cat "$folder/out")"
}

expect 0 '^phobosctl [0-9]' --version
expect 0 'Examples:' --help
expect 0 'Examples:'
expect 2 'no command' frobnicate
expect 1 "no daemon listens at $socket" status
[ ! -e "$socket" ] || fail "it started a daemon"

"$phobosd" --private --socket="$socket" --cache-dir="$folder/cache" --compiler="$compiler" --ready-fd=3 \
  3>"$folder/ready" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" || true; rm -rf "$folder"' EXIT
for _ in $(seq 300); do
  grep -q ready "$folder/ready" && break
  kill -0 "$daemon" || break
  sleep 0.05
done

expect 0 "^phobosd .*, pid $daemon, " status
expect 0 "^cache     $folder/cache" status
expect 0 '"pid": *"'"$daemon"'"' status --format=json
expect 1 'phobosctl: .' results show abcdef
exit $failed
