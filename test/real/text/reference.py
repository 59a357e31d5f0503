"""Python's readers of JSON and XML beside ours: makes records by chance, and compares what landed in Parquet with what they read.

Commands on standard input, one a line, answered by a line of JSON; SCHEMA is a file of a table's schema:
  make FORMAT SCHEMA SEED COUNT DAMAGED FILE   payloads, a share of them damaged, each behind its length of four bytes
  compare FORMAT SCHEMA FILE PARQUET VALUES FAULTS
                                               PARQUET by columns, VALUES by way of Values; FAULTS: {row: code} of what was refused
"""
import json
import struct
import sys

import json_text
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xml_text
from cells import Refused, array, columns_of


def make(kind, schema, seed, count, damage, out):
    columns, namespaces = columns_of(schema)
    arguments = (int(count), int(seed), float(damage))
    made = json_text.make(columns, *arguments) if kind == "json" else xml_text.make(columns, namespaces, *arguments)
    with open(out, "wb") as f:
        for payload in made:
            f.write(struct.pack("<I", len(payload)) + payload)
    return {"made": int(count)}


def payloads_of(file):
    with open(file, "rb") as f:
        while head := f.read(4):
            yield f.read(struct.unpack("<I", head)[0])


def plain(a):
    """JSON and UUIDs as the text and bytes that they are stored as."""
    if isinstance(a, pa.ChunkedArray):
        a = a.combine_chunks()
    if isinstance(a, pa.ExtensionArray):
        a = a.storage
    t = a.type
    if pa.types.is_struct(t):
        parts = [plain(a.field(i)) for i in range(t.num_fields)]
        return pa.StructArray.from_arrays(parts, names=[f.name for f in t], mask=pc.is_null(a))
    if pa.types.is_map(t):
        return pa.MapArray.from_arrays(starts_of(a), plain(a.keys), plain(a.items))
    if pa.types.is_list(t):
        return pa.ListArray.from_arrays(starts_of(a), plain(a.values))
    if pa.types.is_large_string(t):
        return a.cast(pa.string())
    return a


def starts_of(a):
    """Where lists begin, null where there is none, and the end."""
    starts = pc.if_else(a.is_valid(), a.offsets[:-1], None)
    return pa.concat_arrays([starts, a.offsets[-1:]])


def json_leaves(t, cells, ours):
    """(type text, theirs) of columns in which JSON texts stand: pairs to compare by value, put the same where they are."""
    if t[0] == "json":
        return [o if json_text.same_json(o, c) else ("differs", c) for c, o in zip(cells, ours)]
    if t[0] == "list":
        return [c if c is None or o is None or len(c) != len(o) else json_leaves(t[1], c, o) for c, o in zip(cells, ours)]
    if t[0] == "struct":
        out = []
        for c, o in zip(cells, ours):
            out.append(c if c is None or o is None else {n: json_leaves(x, [c[n]], [o[n]])[0] for n, x in t[1]})
        return out
    return cells


def has_json(t):
    return t[0] == "json" or any(isinstance(p, tuple) and (has_json(p) if t[0] != "struct" else any(has_json(x) for _, x in p)) for p in t[1:])


def show_json(t, cells):
    """What differs as text, so that it can stand in an Arrow array."""
    if t[0] == "json":
        return [repr(c) if isinstance(c, tuple) else c for c in cells]
    if t[0] == "list":
        return [None if c is None else show_json(t[1], c) for c in cells]
    if t[0] == "struct":
        return [None if c is None else {n: show_json(x, [c[n]])[0] for n, x in t[1]} for c in cells]
    return cells


def differences(name, ours, theirs, out):
    """Rows in which two arrays differ, the first of them shown."""
    if ours.type != theirs.type:
        out["different"] += len(theirs)
        out["samples"].append([name, str(ours.type), str(theirs.type)])
    elif not ours.equals(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs)):
            # Null is null, NaN is NaN: as text.
            if not a.equals(b) and str(a.as_py()) != str(b.as_py()):
                out["different"] += 1
                if len(out["samples"]) < 6:
                    out["samples"].append([name, i, str(a.as_py())[:400], str(b.as_py())[:400]])


def compare(kind, schema, payloads, parquet, values, faults):
    columns, namespaces = columns_of(schema)
    read = (json_text if kind == "json" else xml_text).read
    with open(faults, encoding="utf-8") as f:
        refused = {int(k): v for k, v in json.load(f).items()}
    out = {"payloads": 0, "rows": 0, "both_refused": 0, "only_ours": 0, "only_theirs": 0, "unjudged": 0, "cells": 0, "different": 0, "null": 0, "missing": 0, "samples": []}
    rows = []
    for n, payload in enumerate(payloads_of(payloads)):
        out["payloads"] += 1
        try:
            cells, (null, missing) = read(columns, namespaces, payload)
        except Refused as e:
            unjudged = isinstance(e, xml_text.Unjudged)
            out["both_refused" if n in refused else "unjudged" if unjudged else "only_theirs"] += 1
            if n not in refused:
                # The row is there and wanted: left out of the comparison by its number.
                rows.append(None)
                if len(out["samples"]) < 6 and not unjudged:
                    out["samples"].append(["only theirs", str(e), repr(payload)])
            continue
        if n in refused:
            out["only_ours"] += 1
            if len(out["samples"]) < 6:
                out["samples"].append(["only ours", refused[n], repr(payload)])
            continue
        out["null"] += null
        out["missing"] += missing
        rows.append(cells)
    table, by_value = pq.read_table(parquet), pq.read_table(values)
    table.validate(full=True)
    assert table.num_rows == by_value.num_rows == len(rows), (table.num_rows, by_value.num_rows, len(rows))
    kept = pa.array([i for i, r in enumerate(rows) if r is not None], pa.int64())
    rows = [r for r in rows if r is not None]
    out["rows"] = len(rows)
    for i, (name, _, t, _) in enumerate(columns):
        out["cells"] += len(rows)
        ours = plain(table.column(name).take(kept))
        cells = [r[i] for r in rows]
        if has_json(t):
            cells = show_json(t, json_leaves(t, cells, ours.to_pylist()))
        differences(name, ours, array(t, cells), out)
        differences(name + " by way of Values", plain(by_value.column(name).take(kept)), ours, out)
    return out


for line in sys.stdin:
    command, *arguments = line.split()
    print(json.dumps({"make": make, "compare": compare}[command](*arguments)), flush=True)
