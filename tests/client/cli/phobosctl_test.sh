#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# phobosctl as a process: exit statuses, and a real daemon's answers in both formats, also of what the C++ and the C
# example tuned there.
set -euo pipefail
phobosctl=$1
phobosd=$2
compiler=$PWD/$3 # the daemon works in another folder
vector_add=$4
vector_add_c=$5
kernel=$6
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
expect 2 "^phobosctl: --kernel: '.xff.xfe' is not UTF-8 text" results list --kernel=$'\xff\xfe'
expect 2 "^phobosctl: '.xff' is no command" $'\xff'
expect 1 "no daemon listens at $socket, and phobosctl starts none .*LOCK in the cache's folder names its socket\): start phobosd --private --background" status
[ ! -e "$socket" ] || fail "it started a daemon"

daemon=
trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true; wait || true; rm -rf "$folder"' EXIT

start() {
  : >"$folder/ready"
  "$phobosd" --private --socket="$socket" --cache-dir="$folder/cache" --compiler="$compiler" --ready-fd=3 \
    --rounds=3 --warm-up=10ms 3>"$folder/ready" &
  daemon=$!
  for _ in $(seq 300); do
    grep -q ready "$folder/ready" && break
    kill -0 "$daemon" || break
    sleep 0.05
  done
}

start
expect 0 "^phobosd .*, pid $daemon, " status
expect 0 "^cache     $folder/cache" status
expect 0 'No Result is stored' results list
expect 0 '"pid": *"'"$daemon"'"' status --format=json
expect 0 '"results": *\[\]' results list --format json
expect 1 'phobosctl: no key begins with abcdef' results show abcdef
expect 2 "'zz' is no digest" results show zz

# A C++ program tunes; a C program takes what it stored, also after the daemon was killed.
"$vector_add" "$kernel" 10000 >"$folder/out" 2>&1 || fail "vector_add: $(cat "$folder/out")"
grep -q '^winner BLOCK=' "$folder/out" || fail "vector_add did not name the winner: $(cat "$folder/out")"
expect 0 '^[0-9a-f]{12}  add +N=10000 +BLOCK=' results list
expect 0 '^[0-9a-f]{12}  add +N=10000 +BLOCK=' results list --kernel=add --key=N=10000 --limit=1
expect 0 'No Result is stored' results list --kernel=add --key=N=10001
expect 0 '^--key=N=10001 fits none; there is N=10000$' results list --kernel=add --key=N=10001
expect 0 '^--chip=sm_1 fits none; there is x86-64' results list --chip=sm_1
digest=$("$phobosctl" results list | awk '/ add /{print $1}')
expect 0 '^winner      BLOCK=' results show "$digest"
expect 0 '^\* +[0-9]+  BLOCK=[0-9]+ +timed ' results show "${digest:0:6}"
expect 0 '"key_digest": *"'"$digest" results show "$digest" --format=json
kill -KILL "$daemon"
wait "$daemon" || true
start
"$vector_add_c" "$kernel" 10000 >"$folder/out" 2>&1 || fail "vector_add_c: $(cat "$folder/out")"
grep -q '"origin":"winner","generation":1' "$folder/out" || fail "vector_add_c took no winner: $(cat "$folder/out")"
expect 0 ', 0 tunes' status
exit $failed
