#!/usr/bin/env bash
# Runs a command with real servers beside it, and ends them when it ends, however that may be.
#
#   scripts/with-servers.sh [--full-jvm] [--kafka "4.4.0:3 3.9.2:1"] [--postgres] [--s3] [--registry] COMMAND [ARGUMENT...]
#   scripts/with-servers.sh bun test test/real
#
# Without a flag that names servers all of them are started, with one only those that are named.
# The command finds in its environment
#   TWG_REAL_KAFKA  JSON by version: addresses of the listeners, TLS files, cluster id, and the commands that kill a
#                   node and bring it back (see test/servers/main.ts). Users: bob / "bob,pw=1" (PLAIN), alice / alice-pw.
#   TWG_REAL_POSTGRES  JSON: address, superuser, TLS files, port of pgbouncer (transaction mode) or null, and the
#                   commands that kill the server and bring it back (see test/servers/postgres/main.ts).
#   TWG_REAL_S3     JSON: versitygw, the same with TLS, and SeaweedFS: address, keys, bucket (see test/servers/s3/server.ts).
#   TWG_REAL_REGISTRY  JSON: the program of an independent schema registry, and clients of it: a Python and a folder of
#                   npm packages with client.mjs (see test/servers/registry/).
#   TWG_PYTHON      a Python with pyarrow, duckdb and confluent-kafka.
# What cannot be had is said in a line that starts with SKIP, and the tests that need it skip themselves; with
# TWG_STRICT=1 it is an error. TWG_PORTS=first-last narrows the ports.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
# shellcheck source=scripts/lib/need.sh
. "$root/scripts/lib/need.sh"

all_kafka="4.4.0:3 3.9.2:1"
kafka=
postgres=
s3=
registry=
flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --kafka) kafka=$2; shift 2 ;;
    --postgres) postgres=1; shift ;;
    --s3) s3=1; shift ;;
    --registry) registry=1; shift ;;
    --full-jvm) flags+=(--full-jvm); shift ;;
    --) shift; break ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { echo "usage: with-servers.sh [--full-jvm] [--kafka 'VERSION:NODES ...'] [--postgres] [--s3] [--registry] COMMAND..." >&2; exit 2; }

if [ -z "$kafka$postgres$s3$registry" ]; then
  kafka=$all_kafka
  postgres=1
  s3=1
  registry=1
fi

missing() {
  echo "SKIP: $1" >&2
  if [ "${TWG_STRICT:-0}" = 1 ]; then
    echo "with-servers: TWG_STRICT is set, so this is an error" >&2
    exit 1
  fi
}

servers=$root/.cache/servers
run=$servers/run/$$
mkdir -p "$run"
# Whoever finds the folder later knows whether its servers are still wanted.
echo $$ >"$run/owner"
child=
cleanup() {
  trap - EXIT INT TERM HUP
  if [ -n "$child" ] && kill -0 "$child" 2>/dev/null; then kill -TERM "$child" 2>/dev/null || true; fi
  bun "$root/test/servers/main.ts" stop "$run" || true
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Two runs at once share the downloads: one fetches, the other waits.
exec 7>"$servers/fetch.lock"
if command -v flock >/dev/null 2>&1; then flock 7; fi
if need_python "$root/.cache/venv" "$root/test/servers/requirements.txt"; then
  export TWG_PYTHON=$root/.cache/venv/bin/python
else
  missing "no Python with pyarrow, duckdb and confluent-kafka: tests with independent clients are left out"
fi
if [ -n "$s3" ]; then
  weed=$servers/seaweedfs
  if need_program go golang-go && need_python "$weed" "$root/test/servers/s3/requirements.txt" && need_program openssl openssl; then
    if json=$(bun "$root/test/servers/s3/main.ts" start "$run/s3" "$weed/bin/weed" 7>&-); then
      export TWG_REAL_S3=$json
    else
      missing "the real S3 servers did not start: tests against them are left out"
    fi
  else
    missing "no Go, Python or openssl: tests against real S3 servers are left out"
  fi
fi
if [ -n "$postgres" ]; then
  if need_postgres && need_program openssl openssl; then
    need_pgbouncer || missing "no pgbouncer: tests through it are left out"
    if json=$(bun "$root/test/servers/postgres/main.ts" start "$run/postgres" 7>&-); then
      export TWG_REAL_POSTGRES=$json
    else
      missing "the real PostgreSQL did not start: tests against it are left out"
    fi
  else
    missing "no PostgreSQL server or openssl: tests against a real PostgreSQL are left out"
  fi
fi
if [ -n "$registry" ]; then
  clients=$servers/registry
  sources=$root/test/servers/registry
  mkdir -p "$clients/npm"
  if need_program go golang-go && need_python "$clients/venv" "$sources/requirements.txt" &&
    (cd "$sources" && GOFLAGS=-buildvcs=false go build -o "$clients/srfake" .) &&
    cp "$sources"/clients/* "$clients/npm/" && (cd "$clients/npm" && bun install --frozen-lockfile --ignore-scripts >/dev/null); then
    export TWG_REAL_REGISTRY="{\"server\":\"$clients/srfake\",\"python\":\"$clients/venv/bin/python\",\"npm\":\"$clients/npm\"}"
  else
    missing "no Go, Python or npm packages: tests against an independent schema registry are left out"
  fi
fi
if [ -z "$kafka" ]; then
  :
elif need_java && need_program mvn maven && need_program openssl openssl; then
  # shellcheck disable=SC2086 # a list of words on purpose
  if json=$(bun "$root/test/servers/main.ts" start "$run" --owner $$ "${flags[@]}" $kafka 7>&-); then
    export TWG_REAL_KAFKA=$json
  else
    missing "the real Kafka brokers did not start: tests against them are left out"
  fi
else
  missing "no Java, Maven or openssl: tests against real Kafka brokers are left out"
fi
exec 7>&-

"$@" &
child=$!
rc=0
wait "$child" || rc=$?
child=
exit $rc
