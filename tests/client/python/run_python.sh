#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Python test with the package from this tree: run_python.sh FILE [ARGUMENT ...]
set -eu
export PYTHONPATH="$PWD/client/python" PYTHONDONTWRITEBYTECODE=1
# A sanitizer's runtime must be there before the library that wants it. The interpreter itself leaks, by its nature.
preload() {
  LD_PRELOAD=$(clang-14 -print-file-name="libclang_rt.$1-x86_64.so")
  export LD_PRELOAD ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
}
case ${SANITIZER:-} in
  asan) preload asan ;;
  ubsan) preload ubsan_standalone ;;
esac
exec /usr/bin/python3 -W error::RuntimeWarning "$@"
