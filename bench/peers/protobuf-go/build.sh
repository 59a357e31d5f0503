#!/usr/bin/env bash
# usage: build.sh OUT   builds the protobuf-go peer with pinned versions
# orders/orders.pb.go is what protoc-gen-go v1.36.12 makes of orders.proto.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$(dirname "$1")"
cd "$here"
go build -o "$1" .
