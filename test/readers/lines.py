"""Rows of raw files as lines of text, `# path` before each. Usage: lines.py pyarrow|duckdb FILE... As in corpus.ts."""
import sys

NAMES = ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "leader_epoch",
         "producer_id", "producer_epoch", "base_sequence", "transactional"]
COLUMNS = ["_twg_source_" + n for n in NAMES] + ["_twg_record_id"]


def text(value):
    if value is None:
        return "~"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, list):
        return "[" + ",".join(text(h["key"]) + ":" + text(h["value"]) for h in value) + "]"
    return str(value)


def by_pyarrow(path):
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=COLUMNS)
    at = COLUMNS.index("_twg_source_timestamp")
    # As the int64 in the file: Python's datetime does not reach to the ends of it.
    table = table.set_column(at, COLUMNS[at], table.column(at).cast("int64"))
    return zip(*[c.to_pylist() for c in table.columns])


def by_duckdb(path):
    import duckdb

    timestamp = "_twg_source_timestamp"
    wanted = [f"epoch_ms({c})" if c == timestamp else c for c in COLUMNS]
    return duckdb.connect().execute(f"select {', '.join(wanted)} from read_parquet(?)", [path]).fetchall()


read = {"pyarrow": by_pyarrow, "duckdb": by_duckdb}[sys.argv[1]]
for path in sys.argv[2:]:
    sys.stdout.write(f"# {path}\n" + "".join(" ".join(text(v) for v in row) + "\n" for row in read(path)))
