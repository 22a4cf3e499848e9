#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is needed, builds, runs the tests and counts them; the last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/progress.sh

usage() {
  cat <<'END'
usage: bash deploy/test.sh [--fast | --lint | --long] [--asan | --ubsan | --tsan] [--no-setup] [TARGET ...]

Without options: the fast tier, about 5 minutes of tests on 2 cores.

  --fast      the same
  --lint      the fast tier, and the lint of every source
  --long      the lint and every test
  --asan      the fast tier under AddressSanitizer; the same for --ubsan and --tsan
  --no-setup  do not look for missing packages
  TARGET      Bazel targets instead of //...

Exit status: 0 when at least one test ran and none failed.
END
}

tier=fast
config=
setup=yes
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --fast) tier=fast ;;
    --lint) tier=lint ;;
    --long) tier=long ;;
    --asan | --ubsan | --tsan)
      config=${1#--}
      tier=fast
      ;;
    --no-setup) setup=no ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*)
      usage >&2
      fail "unknown option $1"
      ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} = 0 ]; then targets=(//...); fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ "$setup" = yes ]; then bash deploy/setup.sh; fi

case "$tier" in
  long) filter= ;;
  *) filter=-long ;;
esac
options=(--keep_going --build_tests_only "--test_tag_filters=$filter" "--build_tag_filters=$filter"
  --test_summary=terse --test_output=errors)
if [ -n "$config" ]; then options+=("--config=$config"); fi

say "Building and testing ${targets[*]} (tier: $tier${config:+, $config})."
run_bazel test "${options[@]}" --build_event_json_file="$work/tests.json" "${targets[@]}" || true

counted=("$work/tests.json")
if [ "$tier" != fast ]; then
  say "Linting every source that changed since the last run."
  run_bazel build --config=tidy --build_event_json_file="$work/lint.json" "${targets[@]}" || true
  counted+=("--lint=$work/lint.json")
fi

say "Done. bazel-testlogs/ has each test's log; to run one again: bazel test //tests/PLACE:NAME."
exec_status=0
python3 deploy/count_tests.py "${counted[@]}" || exec_status=$?
exit "$exec_status"
