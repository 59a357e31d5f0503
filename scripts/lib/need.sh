# shellcheck shell=bash
# Sourced. Programs that tests need and that a fresh machine may lack: found, or installed by apt-get when root.
# need_<what> returns 0 if it is there afterwards, 1 (with a line on stderr) if it cannot be had.

apt_install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
  echo "need: apt-get install $*" >&2
  if [ -z "${twg_apt_updated:-}" ]; then
    apt-get update -qq >/dev/null 2>&1 || true
    twg_apt_updated=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 </dev/null
}

# program, packages...
need_program() {
  local program=$1
  shift
  command -v "$program" >/dev/null 2>&1 && return 0
  apt_install "$@" && command -v "$program" >/dev/null 2>&1 && return 0
  echo "need: $program is missing and could not be installed (package: $*)" >&2
  return 1
}

# Kafka 4 runs on Java 17 and later.
java_is_new() {
  command -v java >/dev/null 2>&1 || return 1
  local major
  major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
  [ "${major:-0}" -ge 17 ]
}

need_java() {
  java_is_new && return 0
  apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
  java_is_new && return 0
  echo "need: Java 17 or later is missing and could not be installed" >&2
  return 1
}

# Debian's server programs live outside of PATH. No cluster of its own is made, and no service is started.
postgres_is_there() {
  compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null && command -v psql >/dev/null 2>&1
}

need_postgres() {
  postgres_is_there && return 0
  if [ "$(id -u)" = 0 ] && [ -d /etc ] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
  fi
  apt_install postgresql || true
  postgres_is_there && return 0
  echo "need: PostgreSQL's server programs are missing and could not be installed" >&2
  return 1
}

need_pgbouncer() {
  [ -x /usr/sbin/pgbouncer ] && return 0
  apt_install pgbouncer || true
  [ -x /usr/sbin/pgbouncer ]
}

# folder of the virtual environment, requirements file: prints nothing, leaves FOLDER/bin/python
need_python() {
  local venv=$1 requirements=$2 stamp
  stamp=$(cksum <"$requirements")
  if [ -x "$venv/bin/python" ] && [ "$(cat "$venv/requirements.stamp" 2>/dev/null)" = "$stamp" ]; then return 0; fi
  need_program python3 python3 python3-venv || return 1
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    apt_install python3-venv || { echo "need: Python's venv module is missing" >&2; return 1; }
  fi
  # On a machine where it is half there (an interrupted run), it is made anew.
  rm -rf "$venv"
  python3 -m venv "$venv" >&2 || return 1
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" >&2 </dev/null || return 1
  echo "$stamp" >"$venv/requirements.stamp"
}
