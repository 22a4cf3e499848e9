#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a tuned kernel: installs packages, builds, starts a private daemon, tunes the vector add at
# N = 2^24, and launches the winner from a second process, which does not tune.
# Usage: bash deploy/quickstart.sh [N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/progress.sh

n=${1:-16777216}
case "$n" in
  -h | --help)
    sed -n '3,5s/^# //p' deploy/quickstart.sh
    exit 0
    ;;
  *[!0-9]* | 0) fail "N is a number of elements, at least 1, not \"$n\"" ;;
esac

bash deploy/setup.sh

say "Building the daemon, the compiler, phobosctl and libphobos.so."
run_bazel build //daemon/main:phobosd //compiler/main:phobos-compile //client/cli:phobosctl //client/c:libphobos.so

# A copy, so that a later build does not change a program that runs.
say "Putting them into dist/."
mkdir -p dist/bin dist/lib
place() {
  install -m 755 "bazel-bin/$1" "dist/$2.new"
  mv -f "dist/$2.new" "dist/$2"
}
place daemon/main/phobosd bin/phobosd
place compiler/main/phobos-compile bin/phobos-compile
place client/cli/phobosctl bin/phobosctl
place client/c/libphobos.so lib/libphobos.so

# A daemon of this run alone, with a cache of its own: each run shows a tune.
work=$(mktemp -d)
export PHOBOS_SOCKET="$work/tuner.sock" PHOBOS_KERNEL_CACHE_DIR="$work/kernel-cache"
export PHOBOS_LIBRARY="$PWD/dist/lib/libphobos.so" PHOBOS_AUTOSTART=0 PYTHONPATH="$PWD/client/python"
daemon=
finish() {
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap finish EXIT

say "Starting a private daemon."
mkfifo "$work/ready"
dist/bin/phobosd --private --idle-exit=0 --ready-fd=3 3>"$work/ready" 2>"$work/log" &
daemon=$!
read -r word rest <"$work/ready" || word=
if [ "$word" != ready ]; then
  cat "$work/log" >&2
  fail "the daemon did not start: ${rest:-it was killed}"
fi
dist/bin/phobosctl status

say "First process: tunes the vector add at N = $n, then launches the winner."
python3 examples/vector_add.py "$n"

say "Second process: the same kernel at the same N."
python3 examples/vector_add.py "$n"

say "What the daemon remembers:"
dist/bin/phobosctl results list

say "Done. What to do next:"
cat <<END

  Try your own kernel (docs/python.md); a daemon starts by itself when it is needed:
    export PYTHONPATH=$PWD/client/python PATH=$PWD/dist/bin:\$PATH
    export PHOBOS_LIBRARY=$PWD/dist/lib/libphobos.so
    python3 examples/gelu.py

  See what was tuned:           phobosctl results list
  One daemon for the machine:   deploy/systemd/README.md
  Run the tests:                bash deploy/test.sh
END
