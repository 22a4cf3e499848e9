#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Python test with the package from this tree: run_python.sh FILE [ARGUMENT ...]
set -eu
export PYTHONPATH="$PWD/client/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 -W error::RuntimeWarning "$@"
