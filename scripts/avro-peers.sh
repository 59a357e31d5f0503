#!/usr/bin/env bash
# The Avro implementations that ours is held against, in the project's cache: Java's (through Maven) and fastavro (a
# Python environment of its own). Prints two lines: the class path of the one, the Python of the other. Does nothing for
# what is there. With "java" or "fastavro" only that one.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/need.sh
. scripts/lib/need.sh
cache="$PWD/.cache/avro"
mkdir -p "$cache"
# Two runs at once share the downloads.
exec 8>"$cache/lock"
if command -v flock >/dev/null 2>&1; then flock 8; fi

fetch() { # group artifact version
  [ -f "$cache/$2-$3.jar" ] || mvn -q -B dependency:copy -Dartifact="$1:$2:$3" -DoutputDirectory="$cache" >&2
  classes="${classes:+$classes:}$cache/$2-$3.jar"
}

if [ "${1:-java}" = java ]; then
  need_java
  need_program mvn maven
  classes=
  fetch org.apache.avro avro 1.12.1
  fetch com.fasterxml.jackson.core jackson-databind 2.19.2
  fetch com.fasterxml.jackson.core jackson-core 2.19.2
  fetch com.fasterxml.jackson.core jackson-annotations 2.19.2
  fetch org.slf4j slf4j-api 2.0.17
  fetch org.apache.commons commons-compress 1.28.0
  fetch org.xerial.snappy snappy-java 1.1.10.12
  fetch com.github.luben zstd-jni 1.5.7-28
  fetch org.tukaani xz 1.10
  fetch commons-io commons-io 2.20.0
  fetch org.apache.commons commons-lang3 3.18.0
  echo "$classes"
fi
if [ "${1:-fastavro}" = fastavro ]; then
  need_python "$cache/venv" test/core/codecs/avro/requirements.txt
  echo "$cache/venv/bin/python"
fi
