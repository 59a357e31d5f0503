#!/usr/bin/env bash
# Fetches the kafka-clients jar, whose message definitions the wire tests compare ours with, into the project's cache.
# Goes through Maven; does nothing if the jar is there. With "fixtures" it also writes the golden files of
# test/adapters/kafka/wire/fixtures anew from that jar (needs Java 17).
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.4.0
cache="$PWD/.cache/kafka"
jar="$cache/kafka-clients-$version.jar"
mkdir -p "$cache"

fetch() { # group:artifact:version -> the cache folder
  [ -f "$cache/$2" ] || mvn -q -B dependency:copy -Dartifact="$1" -DoutputDirectory="$cache"
}

fetch "org.apache.kafka:kafka-clients:$version" "kafka-clients-$version.jar"
# Kafka's assignors, with which ours are compared, log through it.
fetch org.slf4j:slf4j-api:2.0.17 slf4j-api-2.0.17.jar
echo "$jar"

if [ "${1:-}" = fixtures ]; then
  jackson=2.19.2
  fetch "com.fasterxml.jackson.core:jackson-databind:$jackson" "jackson-databind-$jackson.jar"
  fetch "com.fasterxml.jackson.core:jackson-core:$jackson" "jackson-core-$jackson.jar"
  fetch "com.fasterxml.jackson.core:jackson-annotations:$jackson" "jackson-annotations-$jackson.jar"
  out=test/adapters/kafka/wire/fixtures
  classes="$jar:$cache/jackson-databind-$jackson.jar:$cache/jackson-core-$jackson.jar:$cache/jackson-annotations-$jackson.jar:$cache/slf4j-api-2.0.17.jar"
  bun scripts/kafka-definitions-bodies.ts > "$cache/bodies.jsonl"
  java -cp "$classes" scripts/kafka-definitions-golden.java "$cache/bodies.jsonl" "$out/messages.txt" "$out/errors.tsv"
fi
