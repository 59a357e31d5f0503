#!/usr/bin/env bash
# Every check and test. Sets up what it needs: Bun and the npm packages, and for the full run Java, Maven, Python
# packages and real Kafka brokers in .cache. What cannot be had is skipped with a loud line.
#
#   scripts/test.sh [--fast] [--strict]
#
# --fast leaves out everything that needs servers or the binary; --strict (or TWG_STRICT=1) makes a skip a failure.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
cd "$root"

strict=${TWG_STRICT:-0} fast=0
for argument in "$@"; do
  case $argument in
    --strict) strict=1 ;;
    --fast) fast=1 ;;
  esac
done
if [ "$strict" = 1 ]; then export TWG_STRICT=1; fi
if [ "$fast" = 0 ]; then
  # shellcheck source=scripts/lib/need.sh
  . "$root/scripts/lib/need.sh"
  if [ "$strict" = 1 ]; then need_program shellcheck shellcheck || true; fi
  # The unit tests compare our messages with the definitions that ship inside Kafka's own client.
  if need_java && need_program mvn maven && scripts/kafka-definitions.sh >/dev/null; then :; else
    echo "SKIP: Kafka's message definitions could not be fetched; the tests that compare with them are left out" >&2
  fi
fi
exec bun scripts/test.ts "$@"
