#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the test on the daemon that Bazel built: run.sh TEST.py PHOBOSD
set -eu
PHOBOS_DAEMON=$(readlink -f "$2")
export PHOBOS_DAEMON PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$1"
