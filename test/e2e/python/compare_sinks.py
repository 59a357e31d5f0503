"""Compares sinks beside the primary one with what that has, row for row. Arguments: folder of raw Parquet files, JSON
{topic, sinks: {name: {kind, ...}}}.

Kinds: `table`, raw records in PostgreSQL; `copy`, a topic with locators; `typed`, a folder of rows decoded from JSON {n, what};
`refused`, a folder of what cannot be. What a row must be follows from the raw record by Python's own JSON. Prints JSON
{raw, sinks: {name: {rows, lost, doubled, foreign, differing, samples}}}; `foreign`: rows of no raw record, or of one that has none there.
"""

import glob
import json
import sys
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
from committed import records
from table_lines import shown, table_lines

folder, wanted = sys.argv[1], json.loads(sys.argv[2])
topic = wanted["topic"]
LOCATOR = ["_twg_source_topic", "_twg_source_partition", "_twg_source_offset"]


def rows_of(where, names):
    """Places and columns of all files, which may be of several schemas."""
    for file in glob.glob(where + "/**/*.parquet", recursive=True):
        t = pq.read_table(file, partitioning=None)
        timestamps = "_twg_source_timestamp"
        if timestamps in names:
            t = t.set_column(t.schema.get_field_index(timestamps), timestamps, t.column(timestamps).cast(pa.int64()))
        empty = [None] * t.num_rows
        columns = [t.column(n).to_pylist() if n in t.column_names else empty for n in [*LOCATOR, *names]]
        for of, partition, offset, *row in zip(*columns):
            yield (of, partition, offset), tuple(row)


def headers_text(headers):
    return ",".join(f"{shown(k)}={shown(v)}" for k, v in headers)


RAW = [f"_twg_source_{n}" for n in ["timestamp", "timestamp_type", "key", "value", "headers"]]
raw = {}
for place, (ms, kind, key, value, headers) in rows_of(folder, RAW):
    raw[place] = (ms, kind, key, value, [(h["key"], h["value"]) for h in headers or []])


def decoded(value):
    """None: it cannot be."""
    try:
        order = json.loads(value)
        return order["n"], order["what"]
    except ValueError:
        return None


def of_table(spec):
    def line(place, record):
        ms, kind, key, value, headers = record
        return f"{place[1]}|{place[2]}|{-1 if ms is None else ms}|{kind or '-'}|{shown(key)}|{shown(value)}|{headers_text(headers)}"

    found = []
    for text in table_lines(spec["place"], topic):
        partition, offset, _ = text.split("|", 2)
        found.append(((topic, int(partition), int(offset)), text))
    return {place: line(place, record) for place, record in raw.items()}, found


def of_copy(spec):
    found = []
    for m in records(spec["bootstrap"], spec["topic"]):
        headers = m.headers() or []
        own, added = headers[:-3], [v for _, v in headers[-3:]]
        place = (added[0].decode(), int(added[1]), int(added[2])) if [k for k, _ in headers[-3:]] == LOCATOR else None
        found.append((place, (m.timestamp()[1], m.key(), m.value(), [(k.encode(), v) for k, v in own])))
    return {place: (ms, key, value, headers) for place, (ms, _, key, value, headers) in raw.items()}, found


def of_typed(spec):
    good = {place: decoded(record[3]) for place, record in raw.items() if record[3] is not None}
    return {place: row for place, row in good.items() if row is not None}, list(rows_of(spec["folder"], ["n", "what"]))


def of_refused(spec):
    bad = {place: record for place, record in raw.items() if record[3] is not None and decoded(record[3]) is None}
    expected = {place: ("decode", key, value) for place, (_, _, key, value, _) in bad.items()}
    # Which of decoding's codes it is, is another test's business.
    rows = rows_of(spec["folder"], ["code", "_twg_source_key", "_twg_source_value"])
    return expected, [(place, (code.split(".")[0], key, value)) for place, (code, key, value) in rows]


KINDS = {"table": of_table, "copy": of_copy, "typed": of_typed, "refused": of_refused}


def judged(spec):
    expected, found = KINDS[spec["kind"]](spec)
    seen = Counter(place for place, _ in found)
    wrong = [(place, expected[place], row) for place, row in found if place in expected and row != expected[place]]
    lost = [place for place in expected if place not in seen]
    doubled = [place for place, n in seen.items() if n > 1]
    foreign = [place for place in seen if place not in expected]
    samples = [f"{place} is {str(row)[:200]}, raw has {str(want)[:200]}" for place, want, row in wrong[:3]]
    for what, places in (("lost", lost), ("doubled", doubled), ("foreign", foreign)):
        if places:
            samples.append(f"{what}: {sorted(places, key=str)[:5]}")
    return {
        "rows": len(found), "expected": len(expected), "lost": len(lost), "doubled": sum(seen.values()) - len(seen),
        "foreign": len(foreign), "differing": len(wrong), "samples": samples,
    }


print(json.dumps({"raw": len(raw), "sinks": {name: judged(spec) for name, spec in wanted["sinks"].items()}}))
