"""Rows of Parquet files as JSON, by pyarrow. Argument: folder. In the order of partition and offset; bytes as hex."""

import glob
import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq

P = "_twg_source_"
NAMES = ["partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "transactional", "producer_id", "leader_epoch"]
rows = []
for f in glob.glob(sys.argv[1] + "/**/*.parquet", recursive=True):
    table = pq.read_table(f, columns=[P + n for n in NAMES], partitioning=None)
    i = table.schema.get_field_index(P + "timestamp")
    table = table.set_column(i, P + "timestamp", table.column(i).cast(pa.int64()))
    rows += table.to_pylist()


def plain(value):
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [[plain(h["key"]), plain(h["value"])] for h in value]
    # 64 bits do not fit a JSON number of JavaScript.
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 else value


rows.sort(key=lambda r: (r[P + "partition"], r[P + "offset"]))
print(json.dumps([{n: plain(r[P + n]) for n in NAMES} for r in rows]))
