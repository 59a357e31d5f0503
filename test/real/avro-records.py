"""Records for the comparison of readers: made, written as Avro by fastavro, and told as lines of text, cell by cell.

  make SCHEMA COUNT SEED PAYLOADS    random records; each payload after its length (four bytes, big endian)
  avro SCHEMA PAYLOADS               lines of what fastavro reads
  file SCHEMA COUNT SEED CODEC FILE  random records as a container file of fastavro's
  records FILE                       lines of what fastavro reads from a container file
  parquet FILE                       lines of what pyarrow reads from a Parquet file
"""
import datetime
import decimal
import io
import json
import random
import struct
import sys
import uuid

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MICROSECOND = datetime.timedelta(microseconds=1)


def text(v):
    """One value; both readers give the same Python objects for what is the same, but for what is turned here."""
    if v is None:
        return "null"
    if isinstance(v, bool):
        return str(v)
    if isinstance(v, float):
        return "f" + struct.pack(">d", v).hex()
    if isinstance(v, decimal.Decimal):
        return "d" + format(v, "f")
    if isinstance(v, (bytes, bytearray)):
        return "b" + bytes(v).hex()
    if isinstance(v, uuid.UUID):
        return "b" + v.bytes.hex()
    if isinstance(v, datetime.datetime):
        at = v if v.tzinfo is not None else v.replace(tzinfo=datetime.timezone.utc)
        return "t" + str((at - EPOCH) // MICROSECOND)
    if isinstance(v, (datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, list):
        return "[" + ",".join(text(x) for x in v) + "]"
    if isinstance(v, tuple):
        return "(" + ",".join(text(x) for x in v) + ")"
    if isinstance(v, dict):
        return "{" + ",".join(k + ":" + text(x) for k, x in v.items()) + "}"
    return str(v)


def name_of(s):
    return (s["name"].split(".")[-1] if "name" in s else s["type"]) if isinstance(s, dict) else s


def shaped(s, v):
    """What fastavro reads in the shape of columns: maps as lists of pairs, a union of several as all its members."""
    if isinstance(s, list):
        rest = [b for b in s if b != "null"]
        if v is None:
            return None
        named, value = v if isinstance(v, tuple) else (None, v)
        if len(rest) == 1:
            return shaped(rest[0], value)
        chosen = next(b for b in rest if takes(b, named, value))
        return {name_of(b): shaped(b, value) if b is chosen else None for b in rest}
    if isinstance(s, str):
        return v
    if s["type"] == "record":
        return {f["name"]: shaped(f["type"], v[f["name"]]) for f in s["fields"]}
    if s["type"] == "array":
        return [shaped(s["items"], x) for x in v]
    if s["type"] == "map":
        return [(k, shaped(s["values"], x)) for k, x in v.items()]
    if s.get("logicalType") == "decimal" and s["precision"] > 38:
        return format(v, "f")
    return v


PYTHON = {"string": str, "long": int, "int": int, "double": float, "bytes": (bytes, decimal.Decimal), "boolean": bool}


def takes(branch, named, value):
    if named is not None:
        return isinstance(branch, dict) and branch.get("name") == named
    kind = branch["type"] if isinstance(branch, dict) else branch
    return kind in PYTHON and isinstance(value, PYTHON[kind])


WORDS = ["", "a", "Thalweg", "Gr\u00fc\u00dfe", "\u65e5\u672c\u8a9e", "x" * 100, "\U0001f30a" * 20]


def chance(s, r):
    if isinstance(s, list):
        branch = r.choice(s)
        v = chance(branch, r)
        return (branch["name"], v) if isinstance(branch, dict) and branch["type"] == "record" and len(s) > 2 else v
    kind = s if isinstance(s, str) else s["type"]
    meant = s.get("logicalType") if isinstance(s, dict) else None
    if meant == "decimal":
        digits = r.randint(1, s["precision"])
        return decimal.Decimal(r.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-s["scale"])
    if meant == "uuid":
        return uuid.UUID(int=r.getrandbits(128))
    if meant == "date":
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=r.randint(-200000, 200000))
    if meant == "time-millis":
        return (datetime.datetime.min + datetime.timedelta(milliseconds=r.randrange(86400000))).time()
    if meant == "time-micros":
        return (datetime.datetime.min + datetime.timedelta(microseconds=r.randrange(86400000000))).time()
    if meant is not None and "timestamp" in meant:
        at = EPOCH + datetime.timedelta(milliseconds=r.randint(-(10**13), 10**13))
        if "micros" in meant:
            at += datetime.timedelta(microseconds=r.randrange(1000))
        return at.replace(tzinfo=None) if meant.startswith("local") else at
    if kind == "record":
        return {f["name"]: chance(f["type"], r) for f in s["fields"]}
    if kind == "array":
        return [chance(s["items"], r) for _ in range(r.randrange(4))]
    if kind == "map":
        return {r.choice(WORDS) + str(i): chance(s["values"], r) for i in range(r.randrange(4))}
    if kind == "enum":
        return r.choice(s["symbols"])
    if kind == "fixed":
        return r.randbytes(s["size"])
    return {
        "null": lambda: None,
        "boolean": lambda: r.random() < 0.5,
        "int": lambda: r.randint(-(2**31), 2**31 - 1) >> r.randrange(32),
        "long": lambda: r.randint(-(2**63), 2**63 - 1) >> r.randrange(64),
        "float": lambda: struct.unpack(">f", struct.pack(">f", r.uniform(-1e6, 1e6)))[0],
        "double": lambda: r.uniform(-1e300, 1e300),
        "bytes": lambda: r.randbytes(r.choice([0, 1, 30, 100])),
        "string": lambda: r.choice(WORDS),
    }[kind]()


def make(schema_file, count, seed, out):
    import fastavro

    schema = json.load(open(schema_file))
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    r = random.Random(int(seed))
    with open(out, "wb") as f:
        for _ in range(int(count)):
            b = io.BytesIO()
            fastavro.schemaless_writer(b, parsed, chance(schema, r))
            f.write(struct.pack(">I", len(b.getvalue())))
            f.write(b.getvalue())


def avro(schema_file, payloads):
    import fastavro

    schema = json.load(open(schema_file))
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    with open(payloads, "rb") as f:
        while head := f.read(4):
            b = io.BytesIO(f.read(struct.unpack(">I", head)[0]))
            v = fastavro.schemaless_reader(b, parsed, None, return_record_name=True)
            print(text(shaped(schema, v)))


def file(schema_file, count, seed, codec, out):
    import fastavro

    schema = json.load(open(schema_file))
    r = random.Random(int(seed))
    with open(out, "wb") as f:
        rows = (chance(schema, r) for _ in range(int(count)))
        fastavro.writer(f, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=4000)


def records(path):
    import fastavro

    with open(path, "rb") as f:
        reader = fastavro.reader(f, return_record_name=True)
        schema = json.loads(reader.metadata["avro.schema"])
        for v in reader:
            print(text(shaped(schema, v)))


def parquet(file):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(20000):
        for row in pa.Table.from_batches([batch]).to_pylist():
            print(text(row))


if __name__ == "__main__":
    {"make": make, "avro": avro, "file": file, "records": records, "parquet": parquet}[sys.argv[1]](*sys.argv[2:])
