#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What libphobos.so is to those who load it: small, needing libc alone (as old as 2.34), showing phobos_* and nothing else.
set -euo pipefail
library=$1
failed=0

fail() {
  echo "FAILED: $*" >&2
  failed=1
}

if [ -n "${SANITIZER:-}" ]; then
  echo "built with a sanitizer: another library than the one that is shipped"
  exit 0
fi

size=$(stat -L -c %s "$library")
[ "$size" -lt 1000000 ] || fail "it has $size bytes; under 1 MB is promised"

# Whatever it needs must be of glibc.
while read -r needed; do
  case $needed in
    libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2) ;;
    *) fail "it needs $needed" ;;
  esac
done < <(objdump -p "$library" | awk '/NEEDED/ {print $2}')

newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
[ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.34 ] ||
  fail "it needs symbols of $newest: $(objdump -T "$library" | grep -F "$newest")"

# Undefined symbols that carry no version of glibc's are nobody's (two weak ones are the linker's own).
while read -r symbol; do
  case $symbol in
    __cxa_finalize | __gmon_start__ | _ITM_*) ;;
    *) fail "nothing that it needs has $symbol" ;;
  esac
done < <(nm -D --undefined-only "$library" | awk '{print $2}' | grep -v '@GLIBC')

shown=$(nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort)
for symbol in $shown; do
  grep -qE "\b$symbol\(" client/c/phobos.h || fail "it shows $symbol, which phobos.h does not have"
done
for symbol in $(grep -oE '\bphobos_[a-z_]+\(' client/c/phobos.h | tr -d '(' | sort -u); do
  grep -qx "$symbol" <<<"$shown" || fail "it lacks $symbol"
done
exit $failed
