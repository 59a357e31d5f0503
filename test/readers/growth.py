"""Reads a folder of files whose columns grew, as docs/schemas.md says, and prints the rows of each reader, in order of n."""
import json
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet

folder = sys.argv[1]
found = duckdb.sql(f"select * from read_parquet('{folder}/*.parquet', union_by_name = true) order by n")
names = [c[0] for c in found.description]
print(json.dumps([dict(zip(names, row)) for row in found.fetchall()]))

files = ds.dataset(folder, format="parquet").files
schema = pa.unify_schemas([pa.parquet.read_schema(f) for f in files], promote_options="permissive")
print(json.dumps(ds.dataset(folder, schema=schema).to_table().sort_by("n").to_pylist()))
