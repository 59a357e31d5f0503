"""A raw table of PostgreSQL as lines of text, one a record, in the order of partition and offset, by psql."""

import os
import subprocess
import sys


def shown(data):
    return "-" if data is None else "x" + data.hex()


SELECT = """
copy (select _twg_source_partition || '|' || _twg_source_offset || '|'
    || coalesce(_twg_source_timestamp_beyond, round(extract(epoch from _twg_source_timestamp) * 1000)::bigint, -1) || '|'
    || coalesce(_twg_source_timestamp_type, '-') || '|'
    || coalesce('x' || encode(_twg_source_key, 'hex'), '-') || '|' || coalesce('x' || encode(_twg_source_value, 'hex'), '-') || '|'
    || coalesce((select string_agg('x' || encode(_twg_source_headers[i][1], 'hex') || '='
        || coalesce('x' || encode(_twg_source_headers[i][2], 'hex'), '-'), ',' order by i)
        from generate_subscripts(_twg_source_headers, 1) i), '')
  from %s where _twg_source_topic = '%s' order by _twg_source_partition, _twg_source_offset) to stdout
"""


def table_lines(place, topic):
    """`place`: JSON of the table's place."""
    at = f"host={place['host']} port={place['port']} user={place['user']} dbname={place['database']}"
    # What is sorted may be more than the table's own disk has room for.
    options = {"PGPASSWORD": place["password"], "PGOPTIONS": "-c temp_tablespaces=pg_default"}
    child = subprocess.Popen(["psql", "-qX", at, "-c", SELECT % (place['table'], topic)], stdout=subprocess.PIPE, text=True, env={**os.environ, **options})
    for line in child.stdout:
        yield line.rstrip("\n")
    if child.wait() != 0:
        sys.exit("psql failed")
