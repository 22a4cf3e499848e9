#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves on a machine with a card what CI proves on the stand-in driver: run.sh FOLDER
# FOLDER has the programs card_test, phobosd, phobos-compile, phobosctl and tune_on_card. Runs from the root of the tree.
# Ends with 0 when card_test passes and every tune has a winner.
set -eu
programs=$(readlink -f "$1")
kernels=tests/gpu/end_to_end/kernels.py
folder=$(mktemp -d /tmp/phobos-card-XXXXXX)
export PHOBOS_SOCKET=$folder/s PHOBOS_AUTOSTART=0 HOME=$folder
failed=0
trap 'rm -rf "$folder"' EXIT # the daemon ends by itself when it is idle

"$programs/card_test" || failed=1

began=$(date +%s%N)
"$programs/phobosd" --private --background --socket="$folder/s" --cache-dir="$folder/cache" --idle-exit=30s || exit 1
echo "FIGURE the daemon's start: $((($(date +%s%N) - began) / 1000000)) ms"
"$programs/phobosctl" status
card=$("$programs/phobosctl" status | grep -o 'GPU-[0-9a-f-]*' | head -1)

# tune KERNEL N [force]: one tune, timed from outside.
tune() {
  local began said
  began=$(date +%s%N)
  said=$("$programs/tune_on_card" "$kernels" "$1" "$2" "$card" "${3:-}") || true
  echo "== $1 N=$2 ${3:-}: $((($(date +%s%N) - began) / 1000000)) ms"
  echo "$said"
  grep -q '^winner ' <<< "$said" || failed=1
}

tune add 1024 # starts the worker
tune add 16777216
tune add 16777213
for n in 1 7 1000003 65537; do tune add $n; done
for _ in 1 2 3 4 5; do tune add 16777216 force; done
tune accumulate 16777216
"$programs/phobosctl" status
exit $failed
