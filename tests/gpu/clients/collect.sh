#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what clients_on_card.py needs and puts it into dist/, stripped and packed (20 MiB): dist/ and the checkout are all
# that must be on the machine with the card.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
bazel build //daemon/main:phobosd //compiler/main:phobos-compile //client/c:libphobos.so //tests/gpu/clients:launch_cost
mkdir -p dist/bin dist/lib
rm -f dist/bin/* dist/lib/*
for path in daemon/main/phobosd compiler/main/phobos-compile tests/gpu/clients/launch_cost; do
  strip -o "dist/bin/$(basename "$path")" "bazel-bin/$path"
done
xz -1 dist/bin/*
install -m 755 bazel-bin/client/c/libphobos.so dist/lib/libphobos.so
du -sh dist
