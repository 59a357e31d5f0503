"""Text to cells of typed columns, with Python's own numbers, dates and decimals: what the columns of ours are held against.

A type is a tuple: its name, then its parts: ("decimal", 18, 2), ("list", item), ("struct", ((name, type), ...)).
"""
import datetime
import decimal
import json
import re
import struct
import uuid

import pyarrow as pa

EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
CLOCK = r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
TIME = re.compile(CLOCK, re.ASCII)
STAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ]" + CLOCK + r")?( ?(?:[Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)
HEX = re.compile(r"([0-9a-fA-F]{2})*")
DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32}")
WORDS = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False, "yes": True, "no": False, "y": True, "n": False}
PER_SECOND = {"ms": 1000, "us": 1000000}
DAY = datetime.date(1970, 1, 1).toordinal()


class Refused(Exception):
    """The record cannot be a row; the text says why."""


# --- types


def parse(text):
    tokens = re.findall(r'"[^"]*"|[^\s<>(),]+|[<>(),]', text)
    tokens.reverse()

    def one():
        name = tokens.pop()
        parts = []
        if tokens and tokens[-1] in "<(":
            close = ">" if tokens.pop() == "<" else ")"
            while True:
                if name == "struct":
                    parts.append((tokens.pop().strip('"'), one()))
                else:
                    parts.append(int(tokens.pop()) if name == "decimal" else one())
                if tokens.pop() == close:
                    break
        return (name, tuple(parts)) if name == "struct" else (name, *parts)

    return one()


ARROW = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "uint32": pa.uint32(), "uint64": pa.uint64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(), "binary": pa.binary(), "json": pa.string(),
    "date": pa.date32(), "time": pa.time64("us"), "uuid": pa.binary(16), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"), "timestamptz[ms]": pa.timestamp("ms", "UTC"),
}  # fmt: skip


def arrow(t):
    if t[0] == "decimal":
        return pa.decimal128(t[1], t[2])
    if t[0] == "list":
        return pa.list_(arrow(t[1]))
    if t[0] == "map":
        return pa.map_(arrow(t[1]), arrow(t[2]))
    if t[0] == "struct":
        return pa.struct([(n, arrow(x)) for n, x in t[1]])
    return ARROW[t[0]]


def columns_of(file):
    """(name, what it is called in the source, type, nullable)"""
    with open(file, encoding="utf-8") as f:
        document = json.load(f)
    fields = [(c["name"], c.get("source", c["name"]), parse(c["type"]), c.get("nullable", True)) for c in document["columns"]]
    return fields, document.get("namespaces", {})


# --- cells


def number(text):
    if NUMBER.fullmatch(text) is None:
        raise Refused("no number")
    return decimal.Decimal(text, EXACT) if len(text) < 400 else EXACT.create_decimal(text)


def whole(bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def read(text):
        n = number(text)
        if n and not -20 < n.adjusted() < 25:
            raise Refused("range")
        if n != n.to_integral_value(context=EXACT):
            raise Refused("a fraction")
        if not low <= n <= high:
            raise Refused("range")
        return int(n)

    return read


def nearest(text):
    """The nearest double, and the number itself; None for what is no number but a double has."""
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        if text.lower() in ("+nan", "-nan"):
            raise Refused("no number")
        return float(text), None
    n = number(text)
    value = float(n)
    if value in (float("inf"), float("-inf")):
        raise Refused("range")
    return value, n


def double(text):
    value, n = nearest(text)
    # A whole number that a double does not hold; what the shortest text of the double says is that double.
    if n is not None and n.adjusted() < 40 and abs(value) >= 2**53 and n == n.to_integral_value(context=EXACT) and n != value:
        if decimal.Decimal(repr(value)) != n:
            raise Refused("it would change")
    return value


def as_single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def single(text):
    """The nearest single of the nearest double; of digits alone none but the one that they say, or are the shortest text of."""
    value, n = nearest(text)
    try:
        near = as_single(value)
    except OverflowError:
        raise Refused("range") from None
    if re.fullmatch(r"[+-]?[0-9]+", text) and abs(value) >= 2**24 and n != decimal.Decimal(near):
        shortest = next(t for t in ("%.*g" % (d, near) for d in range(1, 10)) if as_single(float(t)) == near)
        if n not in (decimal.Decimal(shortest), decimal.Decimal(repr(near))):
            raise Refused("it would change")
    return near


def fixed(precision, scale):
    def read(text):
        n = number(text)
        if n and not -400 < n.adjusted() < precision - scale:
            raise Refused("range")
        scaled = n.scaleb(scale, EXACT)
        if scaled != scaled.to_integral_value(context=EXACT):
            raise Refused("it would be rounded")
        return decimal.Decimal(int(scaled)).scaleb(-scale, EXACT)

    return read


def day(text):
    if DATE.fullmatch(text) is None:
        raise Refused("no date")
    year, month, d = int(text[:4]), int(text[5:7]), int(text[8:])
    # Python has no year 0, which is a leap year: a cycle of the calendar is 400 years.
    shift = 400 if year == 0 else 0
    try:
        return datetime.date(year + shift, month, d).toordinal() - DAY - (146097 if shift else 0)
    except ValueError:
        raise Refused("no date") from None


def of_clock(hours, minutes, seconds, fraction, per_second):
    h, m, s = int(hours), int(minutes), int(seconds or 0)
    if h > 23 or m > 59 or s > 59:
        raise Refused("no time")
    scaled = decimal.Decimal("0." + (fraction or "0")).scaleb(len(str(per_second)) - 1, EXACT)
    if scaled != int(scaled):
        raise Refused("it would be rounded")
    return (h * 3600 + m * 60 + s) * per_second + int(scaled)


def time(text):
    found = TIME.fullmatch(text)
    if found is None:
        raise Refused("no time")
    return of_clock(*found.groups(), 1000000)


def stamp(unit, zoned):
    per_second = PER_SECOND[unit]

    def read(text):
        found = STAMP.fullmatch(text)
        if found is None:
            raise Refused("no timestamp")
        date, *clock, zone = found.groups()
        if (zone is not None) != zoned:
            raise Refused("zone")
        at = day(date) * 86400 * per_second
        if clock[0] is not None:
            at += of_clock(*clock, per_second)
        offset = (zone or "Z").strip()
        if offset not in "Zz":
            digits = offset[1:].replace(":", "").ljust(4, "0")
            h, m = int(digits[:2]), int(digits[2:])
            if h > 18 or m > 59:
                raise Refused("no offset")
            at -= (1 if offset[0] == "+" else -1) * (h * 60 + m) * 60 * per_second
        return at

    return read


def identifier(text):
    if DASHED.fullmatch(text) is None:
        raise Refused("no uuid")
    return uuid.UUID(text).bytes


def octets(text):
    digits = text[2:] if text[:2] in ("\\x", "\\X", "0x", "0X") else text
    if HEX.fullmatch(digits) is None:
        raise Refused("no hexadecimal digits")
    return bytes.fromhex(digits)


def boolean(text):
    try:
        return WORDS[text.lower()]
    except KeyError:
        raise Refused("no boolean") from None


READERS = {
    "int8": whole(8, True), "int16": whole(16, True), "int32": whole(32, True), "int64": whole(64, True),
    "uint32": whole(32, False), "uint64": whole(64, False), "float": single, "double": double, "boolean": boolean,
    "string": str, "date": day, "time": time, "uuid": identifier, "binary": octets,
    "timestamp": stamp("us", False), "timestamptz": stamp("us", True), "timestamptz[ms]": stamp("ms", True),
}  # fmt: skip


def reader(t):
    """Of a type without parts: text to the cell, whole numbers for instants."""
    return fixed(t[1], t[2]) if t[0] == "decimal" else READERS[t[0]]


# --- Arrow


def array(t, cells):
    """Cells as an Arrow array; instants are whole numbers until here."""
    kind = t[0]
    if kind == "struct":
        parts = [array(x, [None if c is None else c[n] for c in cells]) for n, x in t[1]]
        mask = pa.array([c is None for c in cells], pa.bool_())
        return pa.StructArray.from_arrays(parts, names=[n for n, _ in t[1]], mask=mask)
    if kind in ("list", "map"):
        offsets, at, items = [], 0, []
        for c in cells:
            offsets.append(None if c is None else at)
            if c is not None:
                at += len(c)
                items.extend(c)
        offsets.append(at)
        starts = pa.array(offsets, pa.int32())
        if kind == "list":
            return pa.ListArray.from_arrays(starts, array(t[1], items))
        return pa.MapArray.from_arrays(starts, array(t[1], [k for k, _ in items]), array(t[2], [v for _, v in items]))
    if kind.startswith("timestamp") or kind == "time":
        return pa.array(cells, pa.int64()).cast(arrow(t))
    return pa.array(cells, arrow(t))
