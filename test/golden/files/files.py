"""Writes the corpus of hard files and what is in them: Parquet by pyarrow and DuckDB, CSV and JSON byte by byte.

What is expected comes from readers that share no code with twg: pyarrow and DuckDB for Parquet, the csv and json modules
of Python for text, or is written down here where those bend values themselves. Run with an interpreter that has pyarrow
and duckdb (test/servers/requirements.txt); the files and expected.json are checked in.
"""
import csv
import datetime as dt
import io
import json
import os
import struct
from decimal import Decimal as D
from decimal import getcontext

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

HERE = os.path.dirname(os.path.abspath(__file__))
cases = []
getcontext().prec = 80


def path(name):
    return os.path.join(HERE, name)


def put(name, content):
    with open(path(name), "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())


def case(name, **expect):
    cases.append({"file": name, **expect})


# ---- canonical values: what the test renders too


def number(x):
    return "NaN" if x != x else struct.pack(">d", x).hex()


def canon(array):
    t = array.type
    if pa.types.is_dictionary(t):
        return canon(array.dictionary_decode())
    if pa.types.is_null(t):
        return [None] * len(array)
    if pa.types.is_timestamp(t) or pa.types.is_date64(t) or pa.types.is_time64(t):
        return [None if v is None else str(v) for v in array.cast(pa.int64()).to_pylist()]
    if pa.types.is_time32(t):
        return [None if v is None else str(v * 1000) for v in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_date32(t):
        return [None if v is None else str(v) for v in array.cast(pa.int32()).to_pylist()]
    if pa.types.is_decimal(t):
        return [None if v is None else str(int(v.scaleb(t.scale))) for v in array.to_pylist()]
    if pa.types.is_boolean(t):
        return array.to_pylist()
    if pa.types.is_integer(t):
        return [None if v is None else str(v) for v in array.to_pylist()]
    if pa.types.is_floating(t):
        return [None if v is None else number(float(v)) for v in array.to_pylist()]
    if pa.types.is_string(t) or pa.types.is_large_string(t):
        return array.to_pylist()
    if pa.types.is_struct(t):
        kids = [canon(array.field(i)) for i in range(t.num_fields)]
        valid = array.is_valid().to_pylist()
        return [[k[i] for k in kids] if valid[i] else None for i in range(len(array))]
    if pa.types.is_map(t):
        return [
            None
            if not array[i].is_valid
            else [list(kv) for kv in zip(*map(canon, entries(array, i)))]
            for i in range(len(array))
        ]
    if pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        return [canon(s.values) if s.is_valid else None for s in array]
    if isinstance(t, pa.UuidType):
        return canon(array.storage)
    return [None if v is None else "0x" + v.hex() for v in array.to_pylist()]


def entries(array, i):
    values = array[i].values
    return values.field(0), values.field(1)


def rows_of(table):
    columns = [
        [v for chunk in column.chunks for v in canon(chunk)] for column in table.columns
    ]
    return [list(r) for r in zip(*columns)]


def read_back(name):
    return rows_of(pq.ParquetFile(path(name)).read())


def parquet(name, table, read=True, **options):
    pq.write_table(table, path(name), **options)
    if read:
        case(name, rows=read_back(name))


# ---- Parquet

N = 53


def some(make):
    return [None if i % 7 == 3 else make(i) for i in range(N)]


EVERY = pa.table(
    {
        "b": pa.array(some(lambda i: i % 2 == 0)),
        "i8": pa.array(some(lambda i: i * 5 % 256 - 128), pa.int8()),
        "u8": pa.array(some(lambda i: i * 5 % 256), pa.uint8()),
        "i16": pa.array(some(lambda i: i * 1237 - 32768), pa.int16()),
        "u16": pa.array(some(lambda i: 65535 - i), pa.uint16()),
        "i32": pa.array(some(lambda i: 2**31 - 1 - i * 2**26), pa.int32()),
        "u32": pa.array(some(lambda i: 2**32 - 1 - i), pa.uint32()),
        "i64": pa.array(some(lambda i: -(2**63) + i), pa.int64()),
        "u64": pa.array(some(lambda i: 2**64 - 1 - i), pa.uint64()),
        "f16": pa.array(some(lambda i: i / 4 - 3), pa.float16()),
        "f": pa.array(some(lambda i: i / 3), pa.float32()),
        "d": pa.array(some(lambda i: i / 3), pa.float64()),
        "s": pa.array(some(lambda i: "é\U0001f600"[: i % 3] + str(i))),
        "ls": pa.array(some(lambda i: "x" * i), pa.large_string()),
        "cat": pa.array(some(lambda i: "abc"[i % 3])).dictionary_encode(),
        "bin": pa.array(some(lambda i: bytes([i, 255, 0])), pa.binary()),
        "fx": pa.array(some(lambda i: bytes([i] * 5)), pa.binary(5)),
        "id": pa.array(some(lambda i: bytes([i] * 16)), pa.uuid()),
        "date": pa.array(some(lambda i: dt.date(1, 1, 1) + dt.timedelta(days=i * 60000))),
        "t32": pa.array(some(lambda i: i * 1000 + 1), pa.time32("ms")),
        "t64": pa.array(some(lambda i: i * 1000000 + 1), pa.time64("us")),
        "t64n": pa.array(some(lambda i: i * 1000000 + 1), pa.time64("ns")),
        "ms": pa.array(some(lambda i: i * 10**14 - 10**12), pa.timestamp("ms")),
        "us": pa.array(some(lambda i: -i * 10**14 + 1), pa.timestamp("us")),
        "ns": pa.array(some(lambda i: i * 10**17 + 1), pa.timestamp("ns")),
        "zms": pa.array(some(lambda i: i * 10**9), pa.timestamp("ms", "UTC")),
        "zus": pa.array(some(lambda i: i * 10**12 + 1), pa.timestamp("us", "Europe/Berlin")),
        "zns": pa.array(some(lambda i: i * 10**14 + 1), pa.timestamp("ns", "UTC")),
        "d9": pa.array(some(lambda i: D(i - 20) / 100), pa.decimal128(9, 2)),
        "d18": pa.array(some(lambda i: D(f"{(i - 20) * 10**13}.99")), pa.decimal128(18, 2)),
        "d38": pa.array(some(lambda i: D(f"{i - 20}{'9' * 34}.99")), pa.decimal128(38, 2)),
        "li": pa.array(
            some(lambda i: [None if j == 1 else j * i for j in range(i % 4)]), pa.list_(pa.int64())
        ),
        "fl": pa.array(some(lambda i: [i, i + 1]), pa.list_(pa.int32(), 2)),
        "st": pa.array(
            some(lambda i: {"a": i, "b": None if i % 2 else str(i), "c": [D(i) / 10]}),
            pa.struct(
                [("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.decimal128(20, 1)))]
            ),
        ),
        "one": pa.array(some(lambda i: {"x": i}), pa.struct([("x", pa.int64())])),
        "los": pa.array(some(lambda i: [{"x": i}, None]), pa.list_(pa.struct([("x", pa.int64())]))),
        "lol": pa.array(some(lambda i: [[i], [], None, [None]]), pa.list_(pa.list_(pa.int32()))),
        "m": pa.array(
            some(lambda i: [(str(j), None if j else j + i) for j in range(i % 3)]),
            pa.map_(pa.string(), pa.int64()),
        ),
        "mm": pa.array(
            some(lambda i: [(i, [("k", [i])])]),
            pa.map_(pa.int32(), pa.map_(pa.string(), pa.list_(pa.int32()))),
        ),
        "nul": pa.nulls(N),
    }
)

parquet("every-type.parquet", EVERY, row_group_size=17, store_decimal_as_integer=True)
parquet(
    "every-type-v2.parquet",
    EVERY,
    compression="zstd",
    data_page_version="2.0",
    use_dictionary=False,
    data_page_size=64,
    write_page_checksum=True,
    write_page_index=True,
    use_compliant_nested_type=False,
)
FEW = EVERY.select(["i64", "s", "li", "d38"])
for codec in ["none", "gzip", "brotli", "lz4", "zstd", "snappy"]:
    parquet(f"codec-{codec}.parquet", FEW, compression=codec)
WHOLE = pa.table(
    {
        "i": pa.array(list(range(0, 4000, 10)), pa.int32()),
        "l": pa.array([2**40 - i * i for i in range(400)], pa.int64()),
        "s": pa.array([f"prefix {i // 7} {i}" for i in range(400)]),
        "t": pa.array([str(i) * (i % 5) for i in range(400)]),
        "f": pa.array([i / 7 for i in range(400)], pa.float32()),
        "d": pa.array([-i / 7 for i in range(400)], pa.float64()),
        "b": pa.array([i % 3 == 0 for i in range(400)]),
    }
)
for version in ["1.0", "2.0"]:
    parquet(
        f"encodings-v{version[0]}.parquet",
        WHOLE,
        use_dictionary=False,
        data_page_version=version,
        column_encoding={
            "i": "DELTA_BINARY_PACKED",
            "l": "DELTA_BINARY_PACKED",
            "s": "DELTA_BYTE_ARRAY",
            "t": "DELTA_LENGTH_BYTE_ARRAY",
            "f": "BYTE_STREAM_SPLIT",
            "d": "BYTE_STREAM_SPLIT",
            "b": "RLE",
        },
        data_page_size=512,
    )
parquet(
    "required.parquet",
    pa.table(
        [[1, 2], ["a", ""], [[1], []]],
        schema=pa.schema(
            [
                pa.field("i", pa.int64(), nullable=False),
                pa.field("s", pa.string(), nullable=False),
                pa.field("l", pa.list_(pa.field("e", pa.int32(), nullable=False)), nullable=False),
            ]
        ),
    ),
)
parquet(
    "floats.parquet",
    pa.table(
        {
            "d": [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324, 1.7976931348623157e308, None],
            "f": pa.array([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45, 3.4028235e38, None], pa.float32()),
            "h": pa.array([float("nan"), float("inf"), -float("inf"), -0.0, 5.960464477539063e-08, 65504.0, None], pa.float16()),
        }
    ),
)
parquet("no-rows.parquet", EVERY.slice(0, 0))
parquet("all-null.parquet", pa.table({"i": pa.array([None] * 9, pa.int32()), "s": pa.array([None] * 9, pa.string())}))
parquet("names.parquet", pa.table({"a b": [1], 'q"uote': [2], "dot.ted": [3], "été \U0001f600": [4], "select": [5]}))
parquet("wide.parquet", pa.table({f"column_{i}": [i, None, -i] for i in range(300)}))
parquet("long-values.parquet", pa.table({"s": ["x" * 30_000, "", "y" * 10_000], "i": [1, 2, 3]}), data_page_size=1000)
with pq.ParquetWriter(path("empty-groups.parquet"), WHOLE.schema) as w:
    for part in [WHOLE.slice(0, 3), WHOLE.slice(0, 0), WHOLE.slice(3, 1), WHOLE.slice(0, 0)]:
        w.write_table(part, row_group_size=100)
case("empty-groups.parquet", rows=read_back("empty-groups.parquet"))
INSTANTS = [0, 1, -1, 1_600_000_000_123_456_789, -9_000_000_000_000_000_000, None]
parquet("int96.parquet", pa.table({"t": pa.array(INSTANTS, pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True)
parquet(
    "int96-far.parquet",
    pa.table({"t": pa.array([-62_135_596_800_000_000, 0, 253_402_300_799_999_999], pa.timestamp("us"))}),
    read=False,
    use_deprecated_int96_timestamps=True,
)
case("int96-far.parquet", rows=[["0"]], rejects=[[0, "value.range"], [2, "value.range"]])
case(
    "int96-far.parquet",
    columns=["timestamp"],
    rows=[["-62135596800000000"], ["0"], ["253402300799999999"]],
)
bad = pa.Array.from_buffers(
    pa.string(),
    4,
    [None, pa.py_buffer(struct.pack("<5i", 0, 1, 2, 4, 5)), pa.py_buffer(b"a\xffb\xc3c")],
)
parquet("no-utf8.parquet", pa.table({"i": [1, 2, 3, 4], "s": bad}), read=False)
case("no-utf8.parquet", rows=[["1", "a"], ["4", "c"]], rejects=[[1, "value.type"], [2, "value.type"]])
split = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 1, 2)), pa.py_buffer(b"\xc3\xa9")]
)
parquet("split-character.parquet", pa.table({"s": split}), read=False)
case("split-character.parquet", rows=[], rejects=[[0, "value.type"], [1, "value.type"]])
parquet("nul-text.parquet", pa.table({"i": [1, 2, 3], "s": ["a", "b\0c", "d"]}))
parquet("decimal256.parquet", pa.table({"d": pa.array([D(1)], pa.decimal256(50, 0))}), read=False)
case("decimal256.parquet", failure="files.parquet_type")
parquet("twice.parquet", pa.table([[1], [2]], names=["a", "a"]), read=False)
case("twice.parquet", failure="files.schema")
parquet("case.parquet", pa.table([[1], [2]], names=["a", "A"]), read=False)
case("case.parquet", failure="files.schema")
parquet("narrower.parquet", pa.table({"a": pa.array([1, 300, None, -129], pa.int64())}), read=False)
case("narrower.parquet", columns=["int16"], rows=[["1"], ["300"], [None], ["-129"]])
case("narrower.parquet", columns=["int8"], rows=[["1"], [None]], rejects=[[1, "value.range"], [3, "value.range"]])
case("narrower.parquet", columns=["uint32"], rows=[["1"], ["300"], [None]], rejects=[[3, "value.range"]])
case("narrower.parquet", columns=["string"], failure="files.schema")

rows = duckdb.sql(
    """SELECT i::TINYINT a, i::UBIGINT b, (i / 7)::DECIMAL(12, 3) c, uuid() IS NOT NULL d, [i, NULL] e, {'x': i, 'y': 'z'} f,
       MAP {'k': i} g, TIMESTAMP '2020-01-01' + INTERVAL (i) DAY h, (i % 3)::VARCHAR j FROM range(40) t(i)"""
)
duckdb.sql(f"COPY rows TO '{path('duckdb-v2.parquet')}' (format parquet, parquet_version v2, row_group_size 2048)")
case("duckdb-v2.parquet", rows=read_back("duckdb-v2.parquet"))
duckdb.sql(
    f"COPY (SELECT INTERVAL (i) MONTH + INTERVAL (i * 2) DAY + INTERVAL (i) SECOND v FROM range(3) t(i)) TO '{path('interval.parquet')}' (format parquet)"
)
case("interval.parquet", rows=[[["0", "0", "0"]], [["1", "2", "1000000000"]], [["2", "4", "2000000000"]]])


class Keys(pe.KmsClient):
    def __init__(self, _):
        super().__init__()

    def wrap_key(self, key, _):
        return key

    def unwrap_key(self, key, _):
        return key


def encrypted(name, plaintext_footer):
    config = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["i"]}, plaintext_footer=plaintext_footer, double_wrapping=False
    )
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    table = pa.table({"i": [1, 2], "s": ["a", "b"]})
    with pq.ParquetWriter(path(name), table.schema, encryption_properties=properties) as out:
        out.write_table(table)
    case(name, failure="files.parquet_feature")


encrypted("encrypted-footer.parquet", False)
encrypted("encrypted-column.parquet", True)

whole = open(path("codec-none.parquet"), "rb").read()
for name, content in {
    "nothing.parquet": b"",
    "magic.parquet": b"PAR1",
    "magics.parquet": b"PAR1PAR1",
    "no-footer.parquet": whole[:-300],
    "half.parquet": whole[: len(whole) // 2],
    "long-footer.parquet": whole[:-8] + struct.pack("<I", 2**31) + b"PAR1",
    "begin-lost.parquet": b"xxxx" + whole[4:],
    "shifted.parquet": whole[:4] + whole[104:],
    "csv.parquet": b"a,b\n1,2\n3,4\n5,6\n",
}.items():
    put(name, content)
    case(name, failure="files.not_parquet")
summed = bytearray(open(path("every-type-v2.parquet"), "rb").read())
summed[60] ^= 1
put("checksum.parquet", bytes(summed))
case("checksum.parquet", failure="files.not_parquet")

# ---- CSV


def text(name, content, names=None, encoding="utf-8", **expect):
    """Rows as the csv module reads them, all text; an empty unquoted field is null (the module cannot tell)."""
    put(name, content)
    if not expect:
        body = (content if isinstance(content, bytes) else content.encode()).decode(encoding)
        records = list(csv.reader(io.StringIO(body.removeprefix("\ufeff"), newline=""), delimiter=names or ","))
        expect = {"rows": [[c or None for c in r] for r in records[1:] if r]}
    case(name, text=True, **expect)


text("comma-in-quotes.csv", 'first,last,address\nJohn,Doe,"120 any st., Anytown, WW"\nA,B,"a, b"\n')
text("empty.csv", 'a,b,c\n1,"",""\n2,3,4\n', rows=[["1", "", ""], ["2", "3", "4"]])
text("empty-crlf.csv", 'a,b,c\r\n1,"",""\r\n2,,4\r\n', rows=[["1", "", ""], ["2", None, "4"]])
text("escaped-quotes.csv", 'a,b\n1,"ha ""ha"" ha"\n3,"""x"""\n')
text("json.csv", 'key,val\n1,"{""type"": ""Point"", ""coordinates"": [102.0, 0.5]}"\n2,"{}"\n')
text("newlines.csv", 'a,b,c\n1,2,3\n"Once upon \na time",5,6\n7,8,9\n')
text("newlines-crlf.csv", 'a,b,c\r\n1,2,3\r\n"Once upon \r\na time",5,6\r\n7,8,9\r\n')
text("quotes-and-newlines.csv", 'a,b\n1,"ha \n""ha"" \nha"\n3,4\n')
text("utf8.csv", "a,b,c\n1,2,3\n4,5,ʤ\n")
text("bom.csv", "\ufeffa,b\n1,2\n3,4\n")
text("no-last-newline.csv", "a,b\n1,2\n3,4")
text("blank-lines.csv", "a,b\n\n1,2\n\n\n3,4\n\n")
text("semicolon.csv", "a;b\n1;2,5\n3;4,5\n", names=";")
text("tab.tsv", 'a\tb\n1\t"x\ty"\n3\t4\n', names="\t")
text("pipe.csv", "a|b\n1|2\n3|4\n", names="|")
text("spaces.csv", "a,b\n 1 , 2\n3,  \n", rows=[[" 1 ", " 2"], ["3", "  "]])
text("leading-zeros.csv", "zip,n\n00501,1\n01234,2\n")
text("unicode-names.csv", '"naïve col","第二"\nx,y\nz,w\n')
text("newline-in-header.csv", '"a\nb",c\n1,2\n3,4\n')
text("quote-comma.csv", 'a,b\n""",",1\n"x",2\n')
text("nul-later.csv", "a,b\n" + "1,2\n" * 50 + "x\0y,3\n", rows=[["1", "2"]] * 50 + [["x\0y", "3"]])
text("header-only.csv", "a,b,c\n", rows=[])
text("ragged.csv", "a,b\n1,2\n3\n4,5,6\n7,8\n", rows=[["1", "2"], ["7", "8"]], rejects=[[1, "row.columns"], [2, "row.columns"]])
text("stray-quote.csv", 'a,b\n1,x"y\n2,"z"w\n3,v\n', rows=[["1", 'x"y'], ["3", "v"]], rejects=[[1, "row.quote"]])
text("open-quote.csv", 'a,b\n1,2\n3,"never closed\n4,5\n', rows=[["1", "2"]], rejects=[[1, "row.quote"]])
text("quote-late.csv", "a,b\n" + "1,2\n" * 1500 + '"3,","4"\n', rows=[["1", "2"]] * 1500 + [["3,", "4"]])
text("no-utf8.csv", b"a,b\n1,x\n2,\xff\n3,y\n", rows=[["1", "x"], ["3", "y"]], rejects=[[1, "row.encoding"]])
text("windows-1252.csv", "a,b\n1,caf\u00e9 \u20ac\n2,\u201cx\u201d\n".encode("cp1252"), encoding="cp1252", options={"encoding": "windows-1252"},
     rows=[["1", "caf\u00e9 \u20ac"], ["2", "\u201cx\u201d"]])
text("windows-1252-undeclared.csv", "a,b\n1,caf\u00e9\n2,x\n".encode("cp1252"), rows=[["2", "x"]], rejects=[[0, "row.encoding"]])
text("utf16.csv", b"\xff\xfe" + "a,b\n1,\u00e9\n".encode("utf-16-le"), rows=[["1", "\u00e9"]])
text("twice.csv", "a,b,a\n1,2,3\n", failure="files.header")
text("nothing.csv", "", failure="files.header")
put("numbers.csv", "i,d,x\n9007199254740993,0.1,1e400\n18446744073709551615,12345678901234567890.123456789,1\n-1,1.5,2.50\n")
case("numbers.csv", columns=["uint64", "decimal(38,9)", "double"],
     rows=[["18446744073709551615", str(int(D("12345678901234567890.123456789").scaleb(9))), number(1.0)]],
     rejects=[[0, "value.range"], [2, "value.range"]])

# ---- JSON


def lines(name, content, **expect):
    put(name, content)
    case(name, **expect)


lines("big-numbers.ndjson", '{"a":9007199254740993}\n{"a":18446744073709551615}\n{"a":-9223372036854775808}\n',
      columns=["decimal(20,0)"], rows=[["9007199254740993"], ["18446744073709551615"], ["-9223372036854775808"]])
lines("u64.ndjson", '{"a":18446744073709551615}\n{"a":18446744073709551616}\n', columns=["uint64"],
      rows=[["18446744073709551615"]], rejects=[[1, "value.range"]])
lines("as-double.ndjson", '{"a":9007199254740993}\n{"a":1e400}\n{"a":1e308}\n{"a":0.1}\n', columns=["double"],
      rows=[[number(1e308)], [number(0.1)]], rejects=[[0, "value.precision"], [1, "value.range"]])
lines("duplicate-keys.ndjson", '{"a":1,"a":2}\n{"a":3}\n{"a":{"b":1}}\n', columns=["int64"], rows=[["3"]],
      rejects=[[0, "json.duplicate_key"], [2, "json.kind"]])
lines("not-numbers.ndjson", '{"a":NaN}\n{"a":Infinity}\n{"a":-Infinity}\n{"a":1}\n{"a":+1}\n{"a":01}\n{"a":.5}\n{"a":1.}\n', columns=["double"],
      rows=[[number(1.0)]], rejects=[[i, "json.syntax"] for i in (0, 1, 2, 4, 5, 6, 7)])
lines("syntax.ndjson", '{"a":1,}\n{"a":1\n[1]\n"x"\n{\'a\':1}\n{"a":1} x\n{"a":2}\n', columns=["int64"], rows=[["2"]],
      rejects=[[0, "json.syntax"], [1, "json.syntax"], [2, "json.not_object"], [3, "json.not_object"], [4, "json.syntax"], [5, "json.syntax"]])
strings = [{"s": "\u00e9\U0001f600"}, {"s": "\"\\/\b\f\n\r\t"}, {"s": ""}, {"s": None}, {}]
lines("strings.ndjson", "\n".join(json.dumps(s) for s in strings) + "\n", columns=["string"], rows=[[s.get("s")] for s in strings])
lines("blank-lines.ndjson", '\n{"a":1}\n\n  \n{"a":2}\r\n\r\n{"a":3}', columns=["int64"], rows=[["1"], ["2"], ["3"]])
lines("bom.ndjson", '\ufeff{"a":1}\n', columns=["int64"], rows=[["1"]])
pretty = [{"a": 1, "b": ["x", "]"]}, {"a": 2, "b": []}, {"a": None, "b": None}]
lines("pretty.json", json.dumps(pretty, indent=2), columns=["int64", "list<string>"],
      rows=[[None if r["a"] is None else str(r["a"]), r["b"]] for r in pretty])
lines("empty-array.json", "[]", columns=["int64"], rows=[])
lines("cut-array.json", '[{"a":1},{"a":2}', columns=["int64"], failure="files.not_json")
lines("after-array.json", '[{"a":1}] x', columns=["int64"], failure="files.not_json")
lines("nested.ndjson", '{"a":{"x":1,"y":[{"z":"q"}]},"b":{"k":1,"l":2}}\n{"a":null,"b":{}}\n', columns=["struct<x int64, y list<struct<z string>>>", "map<string,int64>"],
      rows=[[["1", [["q"]]], [["k", "1"], ["l", "2"]]], [None, []]])

with open(path("expected.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases) + "\n]\n")
print(len(cases), "cases")
