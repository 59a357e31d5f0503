"""Records for test/readers/arrow-schema.test.ts, in a folder: a schema by pyarrow, records of it as JSON, and how pyarrow reads them.

  make FOLDER COUNT    schema.arrow, records.ndjson; prints the rows that pyarrow.json reads by the schema, one a line
  read FILE            prints the rows of a Parquet file in the same way
"""
import json
import pathlib
import random
import sys

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int32()),
        ("price", pa.decimal128(20, 3)),
        ("share", pa.float64()),
        ("flag", pa.bool_()),
        ("name", pa.large_string()),
        ("at", pa.timestamp("us")),
        ("seen", pa.timestamp("ms", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("city", pa.string()), ("points", pa.list_(pa.struct([("x", pa.float64()), ("n", pa.int32())])))])),
    ]
)


def record(i, r):
    maybe = lambda make: make() if r.random() < 0.8 else None
    out = {
        "id": i * 2**40,
        "small": maybe(lambda: r.randint(-(2**31), 2**31 - 1)),
        "price": maybe(lambda: f"{r.randint(-10**9, 10**9)}.{r.randint(0, 999):03d}"),
        "share": maybe(lambda: r.uniform(-1e9, 1e9)),
        "flag": maybe(lambda: r.random() < 0.5),
        "name": maybe(lambda: r.choice(["", "a", "Gr\u00fc\u00dfe", "\u65e5\u672c\u8a9e", 'q"\\\n'])),
        "at": maybe(lambda: f"2{r.randint(0, 9)}{r.randint(0, 9)}1-0{r.randint(1, 9)}-1{r.randint(0, 9)} 0{r.randint(0, 9)}:30:0{r.randint(0, 9)}.123456"),
        "seen": maybe(lambda: f"19{r.randint(10, 99)}-02-2{r.randint(0, 8)}T2{r.randint(0, 3)}:15:00.250Z"),
        "tags": maybe(lambda: [r.choice(["x", "y", None]) for _ in range(r.randrange(3))]),
        "place": maybe(lambda: {"city": maybe(lambda: "c"), "points": maybe(lambda: [{"x": r.random(), "n": r.randrange(9)}] * r.randrange(3))}),
    }
    # What is null may be left out.
    return {k: v for k, v in out.items() if v is not None or r.random() < 0.5}


def show(table):
    for row in table.to_pylist():
        print(repr(row))


def make(folder, count):
    folder = pathlib.Path(folder)
    r = random.Random(5)
    with pa.ipc.new_file(folder / "schema.arrow", SCHEMA) as writer:
        writer.write_table(SCHEMA.empty_table())
    records = folder / "records.ndjson"
    records.write_text("".join(json.dumps(record(i, r)) + "\n" for i in range(int(count))))
    options = pa.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    show(pa.json.read_json(records, parse_options=options).cast(SCHEMA))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
    else:
        show(pq.ParquetFile(sys.argv[2]).read())
