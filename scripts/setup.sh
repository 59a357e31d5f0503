#!/usr/bin/env bash
# Installs what every other script needs, into folders that git ignores: the pinned Bun (.cache/bin/bun) and the
# locked npm packages (node_modules). Needs bash and either Node with npm or any Bun. Safe to run again: when
# nothing changed it answers in a few milliseconds.
#
# Run it, or source it to get PATH too:  . scripts/setup.sh
set -euo pipefail
twg_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
twg_bun_version=1.4.5
twg_cache=$twg_root/.cache

twg_is_pinned_bun() { [ -x "$1" ] && [ "$("$1" --version 2>/dev/null)" = "$twg_bun_version" ]; }

# Bun's npm package is a shell: the binary comes in a package by platform, and a postinstall moves it into place.
# Some npm versions run that script, some do not, and Bun's own installer never does. So: look in all places.
twg_find_bun() {
  local dir=$twg_cache/bun/node_modules candidate
  for candidate in "$dir/bun/bin/bun.exe" "$dir/bun/bin/bun" "$dir"/@oven/bun-linux-*/bin/bun; do
    if twg_is_pinned_bun "$candidate"; then echo "$candidate"; return 0; fi
  done
  return 1
}

twg_fetch_bun() {
  mkdir -p "$twg_cache/bun"
  printf '{ "private": true, "dependencies": { "bun": "%s" } }\n' "$twg_bun_version" >"$twg_cache/bun/package.json"
  if command -v npm >/dev/null 2>&1; then
    (cd "$twg_cache/bun" && npm install --silent --no-audit --no-fund --no-package-lock >&2) || return 1
  elif command -v bun >/dev/null 2>&1; then
    (cd "$twg_cache/bun" && bun install --silent --no-save >&2) || return 1
  else
    echo "setup: neither npm nor bun is on PATH. Install Node.js with npm (apt-get install nodejs npm) or Bun." >&2
    return 1
  fi
  twg_find_bun >/dev/null && return 0
  # No binary in any known place: let the package's own installer try.
  if command -v node >/dev/null 2>&1; then (cd "$twg_cache/bun" && node node_modules/bun/install.js >&2) || true; fi
  twg_find_bun >/dev/null
}

twg_setup_bun() {
  local found
  mkdir -p "$twg_cache/bin"
  if twg_is_pinned_bun "$twg_cache/bin/bun" && [ -e "$twg_cache/bin/bunx" ]; then return 0; fi
  found=$(command -v bun || true)
  if [ -z "$found" ] || ! twg_is_pinned_bun "$found"; then
    if ! found=$(twg_find_bun); then
      echo "setup: fetching Bun $twg_bun_version" >&2
      if ! twg_fetch_bun; then
        echo "setup: Bun $twg_bun_version could not be installed from the npm registry" >&2
        return 1
      fi
      found=$(twg_find_bun)
    fi
  fi
  ln -sfn "$found" "$twg_cache/bin/bun"
  ln -sfn bun "$twg_cache/bin/bunx"
  echo "setup: Bun $twg_bun_version at $found" >&2
}

twg_setup_packages() {
  local stamp=$twg_cache/packages.stamp now
  now=$(cat "$twg_root/package.json" "$twg_root/bun.lock" | cksum)
  if [ -d "$twg_root/node_modules" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then return 0; fi
  (cd "$twg_root" && "$twg_cache/bin/bun" install --frozen-lockfile --silent >&2)
  echo "$now" >"$stamp"
}

twg_setup() {
  mkdir -p "$twg_cache"
  # Two scripts may start at once: the second waits for the first instead of unpacking over it.
  exec 8>"$twg_cache/setup.lock"
  if command -v flock >/dev/null 2>&1; then flock 8; fi
  twg_setup_bun && twg_setup_packages
  local rc=$?
  exec 8>&-
  return $rc
}

twg_setup
export PATH="$twg_cache/bin:$PATH"
