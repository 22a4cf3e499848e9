#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of packages.txt that are missing, with apt, as root or through sudo. Needs Debian 12.
# Usage: bash deploy/setup.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ./progress.sh

missing() {
  local name
  sed -e 's/#.*//' packages.txt | while read -r name; do
    if [ -z "$name" ]; then continue; fi
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then echo "$name"; fi
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "packages are missing ($(missing | tr '\n' ' ')) and installing them needs root: run this as root, or install sudo"
  fi
}

# Turns apt's machine-readable status into a line every tenth.
show_progress() {
  local kind package percent rest shown=-1 phase=
  while IFS=: read -r kind package percent rest; do
    percent=${percent%%.*}
    case "$percent" in '' | *[!0-9]*) continue ;; esac
    if [ "$kind" != "$phase" ]; then
      phase=$kind
      shown=-1
    fi
    if [ $((percent / 10)) -gt "$shown" ]; then
      shown=$((percent / 10))
      if [ "$kind" = dlstatus ]; then say "  downloaded $percent %"; else say "  installed $percent %"; fi
    fi
  done
}

command -v dpkg-query >/dev/null || fail "this is no Debian system; install what deploy/packages.txt lists by your own means"
packages=$(missing)
if [ -z "$packages" ]; then
  say "All packages are here."
  exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "Installing $(echo "$packages" | wc -l) packages from Debian (about 3 GB on disk with what they need)."
as_root true # asks for the password here, where it can be seen
if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "apt-get update failed; see above. Check the network and /etc/apt/sources.list"
fi
# shellcheck disable=SC2086  # one word a package
if ! as_root env DEBIAN_FRONTEND=noninteractive bash -c \
  'exec apt-get -q install -y --no-install-recommends -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 "$@" 3>&1 >"$0" 2>&1' \
  "$log" $packages | show_progress; then
  tail -n 20 "$log" >&2
  fail "apt-get install failed; see above. Was it: $(echo "$packages" | tr '\n' ' ')"
fi
left=$(missing)
if [ -n "$left" ]; then fail "apt did not install: $(echo "$left" | tr '\n' ' ')"; fi
say "All packages are here."
