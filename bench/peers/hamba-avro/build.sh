#!/usr/bin/env bash
# usage: build.sh OUT   builds the hamba/avro peer with pinned versions
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$1")"
cd "$here"
go build -o "$1" .
