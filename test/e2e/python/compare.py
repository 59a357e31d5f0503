"""Compares what landed with what librdkafka reads, value by value. Arguments: bootstrap, topic, folder of the Parquet files.

The topic is read committed from its start to its end; the files are read by pyarrow, and once more by DuckDB. Prints
JSON: counts, sums, the sum of a hash of every row as each side has it, and `differences`, which is empty if all is equal.
"""

import glob
import json
import sys
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, TopicPartition

bootstrap, topic, folder = sys.argv[1:4]
HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
FIELDS = [("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", pa.int64()), ("timestamp_type", pa.string()),
          ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)]
SCHEMA = pa.schema(FIELDS)
TYPES = {1: "CreateTime", 2: "LogAppendTime"}


def read_kafka():
    ended = set()
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "compare", "enable.auto.commit": False, "enable.partition.eof": True,
        "isolation.level": "read_committed", "auto.offset.reset": "error", "queued.max.messages.kbytes": 200_000,
    })
    partitions = sorted(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
    starts = [TopicPartition(topic, p, consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=20)[0]) for p in partitions]
    consumer.assign(starts)
    parts, columns = [], {name: [] for name, _ in FIELDS}
    end = time.monotonic() + 600
    while len(ended) < len(partitions):
        if time.monotonic() > end:
            sys.exit("librdkafka did not reach the end of the topic")
        for m in consumer.consume(10_000, 0.2):
            if m.error():
                if m.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(m.partition())
                    continue
                sys.exit(f"librdkafka: {m.error()}")
            kind, ms = m.timestamp()
            headers = m.headers()
            columns["partition"].append(m.partition())
            columns["offset"].append(m.offset())
            columns["timestamp"].append(ms)
            columns["timestamp_type"].append(TYPES.get(kind))
            columns["key"].append(m.key())
            columns["value"].append(m.value())
            columns["headers"].append([{"key": k.encode(), "value": v} for k, v in headers] if headers else [])
        if len(columns["offset"]) > 200_000:
            parts.append(pa.table(columns, schema=SCHEMA))
            columns = {name: [] for name, _ in FIELDS}
    consumer.close()
    return pa.concat_tables([*parts, pa.table(columns, schema=SCHEMA)])


def read_files(files):
    p = "_twg_source_"
    tables = []
    for f in files:
        t = pq.read_table(f, columns=[p + name for name, _ in FIELDS] + [p + "topic"], partitioning=None)
        others = set(t.column(p + "topic").to_pylist()) - {topic} if t.num_rows else set()
        if others:
            sys.exit(f"{f} holds records of {others}")
        columns = [t.column(p + name) for name, _ in FIELDS]
        columns[2] = columns[2].cast(pa.int64())
        tables.append(pa.table([c.cast(kind) for c, (_, kind) in zip(columns, FIELDS)], schema=SCHEMA))
    return pa.concat_tables(tables) if tables else SCHEMA.empty_table()


def in_order(table):
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")]).combine_chunks()


def first_difference(a, b):
    for i in range(min(a.num_rows, b.num_rows)):
        x, y = a.slice(i, 1).to_pylist()[0], b.slice(i, 1).to_pylist()[0]
        if x != y:
            return f"row {i}: librdkafka {str(x)[:300]} files {str(y)[:300]}"
    return f"{a.num_rows} and {b.num_rows} rows"


SUMS = """
select count(*) as rows, count(distinct (partition, "offset")) as positions, sum(octet_length(key))::bigint as key_bytes,
  sum(octet_length(value))::bigint as value_bytes, sum(len(headers))::bigint as headers, sum("timestamp")::hugeint::varchar as timestamps,
  sum(hash("partition", "offset", "timestamp", timestamp_type, key, value, headers)::hugeint)::varchar as hash
from """


def sums(relation):
    cursor = db.execute(SUMS + relation)
    return dict(zip([d[0] for d in cursor.description], cursor.fetchone()))


files = sorted(glob.glob(folder + "/**/*.parquet", recursive=True))
kafka, landed = in_order(read_kafka()), in_order(read_files(files))
differences = []
for name, _ in FIELDS:
    if not kafka.column(name).equals(landed.column(name)):
        differences.append(f"pyarrow: column {name} differs, {first_difference(kafka, landed)}")

db = duckdb.connect()
db.register("kafka", kafka)
if files:
    names = ", ".join(f'_twg_source_{n} as "{n}"' if n != "timestamp" else 'epoch_ms(_twg_source_timestamp) as "timestamp"' for n, _ in FIELDS)
    db.execute("set TimeZone = 'UTC'")
    db.execute(f"create view landed as select {names} from read_parquet({files!r}, hive_partitioning = false, union_by_name = false)")
    ids = f"select count(distinct _twg_record_id), count(*) from read_parquet({files!r}, hive_partitioning = false)"
    distinct_ids, rows = db.execute(ids).fetchone()
    if distinct_ids != rows:
        differences.append(f"{rows} rows have {distinct_ids} record ids")
    of_kafka, of_files = sums("kafka"), sums("landed")
    if of_kafka != of_files:
        differences.append(f"DuckDB: librdkafka {of_kafka} files {of_files}")
    columns = '"partition", "offset", "timestamp", timestamp_type, key, value, headers'
    for a, b in (("kafka", "landed"), ("landed", "kafka")):
        only = db.execute(f"select count(*) from (select {columns} from {a} except all select {columns} from {b})").fetchone()[0]
        if only:
            differences.append(f"DuckDB: {only} records are in {a} only")
else:
    of_kafka, of_files = sums("kafka"), {"rows": 0}
print(json.dumps({
    "files": len(files), "rows": landed.num_rows, "kafka_rows": kafka.num_rows, "kafka": of_kafka, "duckdb": of_files, "differences": differences,
}))
