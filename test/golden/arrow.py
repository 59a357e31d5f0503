"""Arrow schemas as pyarrow writes them, for test/core/formats/arrow: writes arrow.json beside this file.

python arrow.py (pyarrow 26.0.1)
"""
import base64
import io
import json
import pathlib

import pyarrow as pa

every = pa.schema(
    [
        pa.field("null", pa.null()),
        pa.field("bool", pa.bool_(), nullable=False),
        *(pa.field(str(t), t) for t in [pa.int8(), pa.int16(), pa.int32(), pa.int64()]),
        *(pa.field(str(t), t) for t in [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]),
        *(pa.field(str(t), t) for t in [pa.float16(), pa.float32(), pa.float64()]),
        *(pa.field(str(t), t) for t in [pa.string(), pa.large_string(), pa.string_view()]),
        *(pa.field(str(t), t) for t in [pa.binary(), pa.large_binary(), pa.binary_view()]),
        pa.field("fixed", pa.binary(5)),
        pa.field("decimal", pa.decimal128(20, 4)),
        pa.field("decimal32", pa.decimal32(7, 2)),
        pa.field("decimal256", pa.decimal256(38, 0)),
        pa.field("date32", pa.date32()),
        pa.field("date64", pa.date64()),
        *(pa.field(f"time {t}", t) for t in [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]),
        *(pa.field(f"at {u}", pa.timestamp(u)) for u in ["s", "ms", "us", "ns"]),
        pa.field("zoned", pa.timestamp("ms", tz="Europe/Berlin")),
        pa.field("interval", pa.month_day_nano_interval()),
        pa.field("uuid", pa.uuid()),
        pa.field("json", pa.json_()),
        pa.field("list", pa.list_(pa.field("item", pa.int32(), nullable=False))),
        pa.field("large list", pa.large_list(pa.string())),
        pa.field("list view", pa.list_view(pa.string())),
        pa.field("fixed list", pa.list_(pa.float32(), 3)),
        pa.field("map", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
        pa.field(
            "struct",
            pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.list_(pa.struct([("c", pa.string())])))]),
        ),
        pa.field("dictionary", pa.dictionary(pa.int8(), pa.string())),
        pa.field("runs", pa.run_end_encoded(pa.int32(), pa.int64())),
    ],
    metadata={"pandas": "{}"},
)
refused = {
    "union": pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.string())]),
    "duration": pa.duration("us"),
    "wide decimal": pa.decimal256(50, 2),
    "map of numbers": pa.map_(pa.int32(), pa.int32()),
    "negative scale": pa.decimal128(5, -2),
    "struct of nothing": pa.struct([]),
}


def file_of(schema):
    out = io.BytesIO()
    with pa.ipc.new_file(out, schema) as writer:
        writer.write_table(schema.empty_table())
    return out.getvalue()


def text(data):
    return base64.b64encode(bytes(data)).decode()


golden = {
    "message": text(every.serialize()),
    "file": text(file_of(pa.schema([("id", pa.int64()), ("name", pa.string())]))),
    "refused": {name: text(pa.schema([pa.field("x", t)]).serialize()) for name, t in refused.items()},
    "empty": text(pa.schema([]).serialize()),
}
pathlib.Path(__file__).with_name("arrow.json").write_text(json.dumps(golden, indent=1) + "\n")
