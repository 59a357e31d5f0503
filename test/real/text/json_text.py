"""Orders as JSON by chance, and Python's reading of them."""
import decimal
import json
import random
import uuid

from cells import EXACT, Refused, reader

WORDS = ["", "a", "order 7", "Gr\u00fc\u00dfe", "\u65e5\u672c\u8a9e", "\U0001f30a\U0001f30a", "\u2028\u2029", "\x00\x01\x1f\x7f", '"\\/', "\b\f\n\r\t", "null", "1e3", "y" * 90, "\u00e9" * 70]
BLANKS = ["", "", "", "", " ", "\t", " \r ", "  "]
MISSING = object()


# --- records by chance


def string(r, s):
    """In one of the ways that JSON has for it."""
    way = r.randrange(6)
    if way < 3:
        return json.dumps(s, ensure_ascii=False)
    if way < 5:
        return json.dumps(s)
    units = s.encode("utf-16-be")
    return '"' + "".join(("\\u%04x" if i % 4 else "\\u%04X") % (units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2)) + '"'


def integer(r, bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    way = r.randrange(10)
    n = r.choice([low, high, 0, low + 1, high - 1]) if way < 2 else r.randint(low, high) >> r.randrange(bits)
    if way == 9:
        return r.choice(['"%d"', "%d.0", "%d.00e0", "%d0e-1"]) % n
    return str(n)


def exact(r, precision, scale):
    n = r.randrange(10 ** r.randint(1, precision))
    digits = str(n).rjust(scale + 1, "0")
    text = r.choice(["", "-"]) + digits[: len(digits) - scale] + "." + digits[len(digits) - scale :]
    way = r.randrange(10)
    if way == 0:
        return '"' + text + '"'
    if way == 1:
        return str(decimal.Decimal(text).scaleb(-6, EXACT)) + "e6" if "E" not in str(decimal.Decimal(text).scaleb(-6, EXACT)) else text
    return text


def floating(r, single):
    way = r.randrange(8)
    if way == 0:
        return r.choice(["0", "-0", "-0.0", "1e-400", "5e-324", "2.2250738585072011e-308", "1E+2", "0.1", "9007199254740992", "123456789012345680"])
    if way == 1:
        # More digits than a double has.
        return "%d.%030de%d" % (r.randrange(1000), r.randrange(10**30), r.randint(-30, 5))
    if way == 2:
        return "%.3f" % r.uniform(-1e4, 1e4)
    return repr(r.uniform(-1, 1) * 10.0 ** r.randint(-30, 30 if single else 200))


def clock(r):
    return "%02d:%02d:%02d" % (r.randrange(24), r.randrange(60), r.randrange(60))


def date(r):
    return "%04d-%02d-%02d" % (r.choice([r.randint(1, 9999), r.randint(1970, 2030)]), r.randint(1, 12), r.randint(1, 28))


def fraction(r, digits):
    return r.choice(["", "." + "%0*d" % (digits, r.randrange(10**digits)), ".5", "." + "0" * 9])


def anything(r, depth=0):
    way = r.randrange(9 if depth < 4 else 6)
    if way < 6:
        return [lambda: integer(r, 64, True), lambda: floating(r, False), lambda: string(r, r.choice(WORDS)), lambda: r.choice(["true", "false"]), lambda: "null" if depth else "1", lambda: "123456789012345678901234567890.10"][way]()
    if way < 8:
        return listed(r, [anything(r, depth + 1) for _ in range(r.randrange(4))])
    return object_of(r, [("k%d" % i + r.choice(WORDS), anything(r, depth + 1)) for i in range(r.randrange(4))])


def listed(r, items):
    blank = r.choice(BLANKS)
    return "[" + blank + ("," + blank).join(items) + "]"


def object_of(r, members):
    blank = r.choice(BLANKS)
    return "{" + blank + ("," + blank).join(string(r, k) + blank + ":" + r.choice(BLANKS) + v for k, v in members) + blank + "}"


def struct(r, fields, required=()):
    """Members in any order; some null, some not there."""
    members = []
    for name, t in fields:
        way = r.randrange(12)
        if name in required or way > 1:
            members.append((name, value(r, t)))
        elif way == 1:
            members.append((name, "null"))
    r.shuffle(members)
    return object_of(r, members)


INTEGERS = {"int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True), "uint32": (32, False), "uint64": (64, False)}


POOL = {}


def value(r, t):
    """Of each type some hundred are made, most others are taken from these: many records cost little then."""
    pool = POOL.setdefault(id(t), [])
    if len(pool) < 300 or r.random() < 0.02:
        pool.append(fresh(r, t))
        return pool[-1]
    return pool[int(r.random() * len(pool))]


def fresh(r, t):
    kind = t[0]
    if kind in INTEGERS:
        return integer(r, *INTEGERS[kind])
    if kind == "decimal":
        return exact(r, t[1], t[2])
    if kind in ("float", "double"):
        return floating(r, kind == "float")
    if kind == "struct":
        return struct(r, t[1])
    if kind == "list":
        return listed(r, ["null" if r.random() < 0.1 else value(r, t[1]) for _ in range(r.randrange(4))])
    if kind == "map":
        return object_of(r, [(r.choice(WORDS) + str(i), "null" if r.random() < 0.1 else value(r, t[2])) for i in range(r.randrange(4))])
    if kind == "json":
        return anything(r)
    if kind == "boolean":
        return r.choice(["true", "false"])
    if kind == "string":
        return string(r, r.choice(WORDS) + r.choice(WORDS))
    text = {
        "date": lambda: date(r),
        "time": lambda: clock(r) + fraction(r, 6),
        "timestamp": lambda: date(r) + r.choice("T ") + clock(r) + fraction(r, 6),
        "timestamptz[ms]": lambda: date(r) + "T" + clock(r) + fraction(r, 3) + r.choice(["Z", "z", "+02:00", "-0730", "+00"]),
        "uuid": lambda: str(uuid.UUID(int=r.getrandbits(128))),
        "binary": lambda: r.choice(["", "0x", "\\x"]) + r.randbytes(r.randrange(12)).hex(),
    }[kind]()
    return string(r, text)


MARKS = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"0", b"-", b"e", b".", b" ", b"\x00", b"\xff", b"\\ud800", b"NaN", b"/**/", b'"id":1,']


def damaged(r, b):
    at = r.randrange(len(b))
    way = r.randrange(4)
    if way == 0:
        return b[:at]
    if way == 1:
        return b[:at] + b[at + 1 :]
    if way == 2:
        return b[:at] + b[at : at + r.randint(1, 30)] + b[at:]
    return b[:at] + r.choice(MARKS) + b[at + r.randrange(2) :]


def make(columns, count, seed, damage):
    r = random.Random(seed)
    POOL.clear()
    fields = [(source, t) for _, source, t, _ in columns]
    required = {source for _, source, _, nullable in columns if not nullable}
    for _ in range(count):
        payload = (r.choice(BLANKS) + struct(r, fields, required) + r.choice(BLANKS)).encode()
        # A record is a line.
        yield damaged(r, payload).replace(b"\n", b" ") if r.random() < damage else payload


# --- reading


class Number(str):
    """Its text: no digit is lost before the column is known."""

    __slots__ = ()

    def __repr__(self):
        return "#" + self


class Twice(dict):
    """An object with a key that comes twice: no value of a column, and in a JSON text it stands as it is."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.pairs = pairs

    def __repr__(self):
        return repr(self.pairs)


def unique(pairs):
    out = dict(pairs)
    return out if len(out) == len(pairs) else Twice(pairs)


def no_constant(text):
    raise Refused(text)


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_float=Number, parse_int=Number, parse_constant=no_constant)
LEAVES = {}
NUMBERS = {*INTEGERS, "decimal", "float", "double"}


def cell(t, v):
    kind = t[0]
    if v is None:
        return None
    if kind == "json":
        return v
    if kind == "struct":
        return row(t[1], v)
    if kind == "list":
        if not isinstance(v, list):
            raise Refused("no list")
        return [cell(t[1], x) for x in v]
    if kind == "map":
        if not isinstance(v, dict) or isinstance(v, Twice):
            raise Refused("no object, or a key twice")
        return [(k, cell(t[2], x)) for k, x in v.items()]
    if kind == "boolean":
        if not isinstance(v, bool):
            raise Refused("no boolean")
        return v
    if not isinstance(v, str) or isinstance(v, Number) and kind not in NUMBERS:
        raise Refused("no " + kind)
    if t not in LEAVES:
        LEAVES[t] = reader(t)
    return LEAVES[t](v.strip() if kind in NUMBERS else v)


def row(fields, v):
    if not isinstance(v, dict) or isinstance(v, Twice):
        raise Refused("no object, or a key twice")
    out = {n: cell(t, v.get(n)) for n, t in fields}
    if not v.keys() <= out.keys():
        raise Refused("a key that the schema does not have")
    return out


def read(columns, _namespaces, payload):
    """(cells, how many fields are there and null, how many are not there), or Refused."""
    try:
        text = payload.decode("utf-8")
        v = DECODER.decode(text)
        # Half a pair of surrogates cannot be written; only an escape can make one.
        if "\\u" in text:
            json.dumps(v, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as e:
        raise Refused(str(e)) from None
    cells = row([(source, t) for _, source, t, _ in columns], v)
    for _, source, _, nullable in columns:
        if not nullable and cells[source] is None:
            raise Refused("null")
    return [cells[source] for _, source, _, _ in columns], presence(columns, v)


def presence(columns, v):
    null = missing = 0
    stack = [(("struct", tuple((source, t) for _, source, t, _ in columns)), v)]
    while stack:
        t, x = stack.pop()
        if x is None:
            continue
        if t[0] == "list":
            stack.extend((t[1], y) for y in x)
        elif t[0] == "map":
            stack.extend((t[2], y) for y in x.values())
        elif t[0] == "struct":
            for n, part in t[1]:
                if n not in x:
                    missing += 1
                elif x[n] is None:
                    null += 1
                elif part[0] in ("list", "map", "struct"):
                    stack.append((part, x[n]))
    return null, missing


def same_json(ours, theirs):
    """The text of ours says the same value, digit for digit and in the same order."""
    return ours is theirs or ours is not None and repr(DECODER.decode(ours)) == repr(theirs)
