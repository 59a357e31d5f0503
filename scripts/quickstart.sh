#!/usr/bin/env bash
# From a fresh clone to a table in under a minute: builds twg, starts the in-repo broker with order events on
# 127.0.0.1, lands them in Parquet, and reads the files back. No server is needed and nothing is left running.
#
#   scripts/quickstart.sh [RECORDS]      default 300000
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
cd "$root"

records=${1:-300000}
config=examples/quickstart.toml
address=$(sed -n 's/^ *bootstrap *= *\["\([^"]*\)"\].*/\1/p' "$config")
data=$(sed -n 's/^ *path *= *"\([^"]*\)".*/\1/p' "$config")
data=${data%%\{*} # what is filled in for each record comes below it
data=${data%/}
port=${address##*:}

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
if [ -n "${NO_COLOR:-}" ] || [ ! -t 1 ]; then say() { printf '\n== %s\n' "$*"; }; fi

broker=
cleanup() {
  trap - EXIT
  if [ -n "$broker" ] && kill -0 "$broker" 2>/dev/null; then
    kill "$broker" 2>/dev/null || true
    wait "$broker" 2>/dev/null || true
  fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

say "1. building dist/twg"
# shellcheck source=scripts/lib/need.sh
. "$root/scripts/lib/need.sh"
# The C++ runtime goes into the binary; almost every machine has it.
if ! ldconfig -p 2>/dev/null | grep -q 'libstdc++\.so\.6'; then apt_install libstdc++6 libgcc-s1 || true; fi
bun scripts/build-binary.ts

say "2. starting a broker with $records order events at $address"
if (exec 9<>"/dev/tcp/${address%:*}/$port") 2>/dev/null; then
  echo "quickstart: something already listens on $address; end it, or change bootstrap in $config" >&2
  exit 3
fi
log=$root/.cache/quickstart-broker.log
bun test/brokers/kafka/serve.ts --port "$port" --topic orders --partitions 6 --records "$records" --compression lz4 >"$log" 2>&1 &
broker=$!
for _ in $(seq 300); do
  if grep -q '^ready ' "$log"; then break; fi
  if ! kill -0 "$broker" 2>/dev/null; then
    cat "$log" >&2
    echo "quickstart: the broker ended at its start" >&2
    exit 1
  fi
  sleep 0.1
done
grep '^ready ' "$log"

say "3. dist/twg stream -c $config --until-caught-up"
# The topic is made anew each time, so what an earlier quickstart landed is put away.
case $data in
  ./quickstart-data) rm -rf "$data" ;;
  *) echo "quickstart: $config lands in $data, which is not the quickstart's folder to clear" >&2; exit 3 ;;
esac
dist/twg stream -c "$config" --until-caught-up

say "4. what landed: dist/twg inspect parquet $data --rows 3"
dist/twg inspect parquet "$data" --rows 3

say "5. coverage per partition: dist/twg inspect coverage -c $config"
dist/twg inspect coverage -c "$config"

say "done: the files are in $data"
