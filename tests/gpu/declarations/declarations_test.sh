#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares our declarations of the CUDA driver with cuda.h: declarations_test.sh COMPARE.cc
# Where no cuda.h is, there is nothing to compare. It comes with a CUDA toolkit, with Debian's nvidia-cuda-dev (non-free)
# and with the PyPI wheel nvidia-cuda-runtime; PHOBOS_CUDA_INCLUDE names its folder.
set -eu
source=$1
for include in "${PHOBOS_CUDA_INCLUDE:-}" /usr/local/cuda/include /usr/include; do
  [ -n "$include" ] && [ -e "$include/cuda.h" ] || continue
  # Bazel links sources into a folder of its own; headers of ours are found from there.
  clang++-14 -std=c++20 -fsyntax-only -I. -isystem "$include" "$source"
  echo "compared with $include/cuda.h"
  # The comparison must see a difference: a constant with another value, a symbol of another version, a parameter less.
  for change in 's/kOutOfMemory = 2,/kOutOfMemory = 3,/' 's/cuMemAlloc, _v2/cuMemAlloc, /' \
    's/(Device \* device, int ordinal)/(Device * device)/'; do
    changed=$(mktemp -d)
    mkdir -p "$changed/client/launch/cuda"
    for header in declarations.h functions.h; do
      sed "$change" "client/launch/cuda/$header" > "$changed/client/launch/cuda/$header"
    done
    if clang++-14 -std=c++20 -fsyntax-only -I"$changed" -isystem "$include" "$source" 2> /dev/null; then
      echo "the comparison does not see $change" >&2
      exit 1
    fi
    rm -r "$changed"
  done
  exit 0
done
echo "skipped: no cuda.h; PHOBOS_CUDA_INCLUDE names the folder of one"
