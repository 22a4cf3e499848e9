#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share; sourced, not run.
set -euo pipefail

started=$(date +%s)

# say TEXT: one line with the time since the start.
say() {
  local seconds=$(($(date +%s) - started))
  printf '[%2d:%02d] %s\n' $((seconds / 60)) $((seconds % 60)) "$*"
}

# fail TEXT: says what is wrong and what to do, and ends.
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# run_bazel COMMAND ARGUMENT ...: bazel, with its progress as a bar on a terminal and as a line every 15 seconds elsewhere.
run_bazel() {
  local command=$1
  shift
  local progress=(--color=no --curses=no --show_progress_rate_limit=15)
  if [ -t 2 ]; then progress=(--show_progress_rate_limit=0.5); fi
  bazel "$command" "${progress[@]}" --ui_event_filters=-info,-debug --show_result=0 "$@"
}
