#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one law over the tree that this runfile is a link into: run.sh LAW.py ANCHOR [ARGUMENT ...]
set -eu
law=$1
PHOBOS_TREE=$(dirname "$(readlink -f "$2")")
export PHOBOS_TREE PYTHONDONTWRITEBYTECODE=1
shift 2
exec /usr/bin/python3 "$law" "$@"
