"""Orders as XML by chance, and the reading of Python's ElementTree (expat) of them."""
import random
import re
import uuid
import xml.etree.ElementTree as ET
from xml.parsers import expat

from cells import Refused, reader

WORDS = ["", "a", "order 7", "Gr\u00fc\u00dfe", "\u20ac \u0161", "\u65e5\u672c\u8a9e", "\U0001f30a", "]]", "<&>", "\"'", " x ", "\t\n", "\r", "\r\n", "y" * 80, "--", "?>", "\u0085\u00a0"]
PLAIN = re.compile(r"[\w :.+-]*", re.ASCII)
XSI = "http://www.w3.org/2001/XMLSchema-instance"
LATIN = {"iso-8859-1": "ISO-8859-1", "windows-1252": "windows-1252"}


# --- documents by chance


class Writer:
    """Writes one document; `encoding` says which characters need a reference."""

    def __init__(self, r, namespaces, encoding):
        self.r, self.encoding = r, encoding
        # Whatever the document calls them.
        self.prefix = {}
        names = r.sample(["", "o", "p", "q-1", "_x.y", "\u00e9"], len(namespaces))
        for (own, uri), prefix in zip(namespaces.items(), names):
            self.prefix[own] = (prefix, uri)
        self.root = "".join(
            " xmlns%s=%s" % (":" + p if p else "", self.quoted(u)) for p, u in self.prefix.values()
        )

    def fits(self, c):
        try:
            c.encode(self.encoding)
        except UnicodeEncodeError:
            return False
        return True

    def character(self, c, attribute, quote=None):
        if c in "<&" or c == quote or c == "\r" or attribute and c in "\t\n" or not self.fits(c) or self.r.random() < 0.03:
            if c in "<>&\"'" and self.r.random() < 0.7:
                return {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", "'": "&apos;"}[c]
            return self.r.choice(["&#%d;", "&#x%x;", "&#x%X;"]) % ord(c)
        return c

    def quoted(self, s):
        quote = self.r.choice("\"'")
        return quote + self.escaped(s, True, quote) + quote

    def escaped(self, s, attribute, quote=None):
        if PLAIN.fullmatch(s) and self.r.random() < 0.8:
            return s
        return "".join(self.character(c, attribute, quote) for c in s)

    def text(self, s):
        """Plain, with references, in sections, parted by what is no text; line ends of three kinds."""
        out = []
        pieces = [s] if len(s) < 3 or self.r.random() < 0.5 else [s[: len(s) // 2], s[len(s) // 2 :]]
        for piece in pieces:
            if self.r.random() < 0.2 and "]]>" not in piece and "\r" not in piece and all(map(self.fits, piece)):
                out.append("<![CDATA[" + piece + "]]>")
            else:
                out.append(self.escaped(piece, False).replace("]]>", "]]&gt;"))
            if self.r.random() < 0.1:
                out.append(self.r.choice(["<!-- - <x> & -->", "<?pi a?>", "<!---->", "<![CDATA[]]>"]))
        text = "".join(out)
        return text.replace("\n", self.r.choice(["\n", "\r\n", "\r"]))

    def attribute(self, full, value):
        own, colon, local = full.rpartition(":")
        if colon and self.prefix[own][0] == "":
            # The default namespace is not that of attributes.
            return ' n:%s=%s xmlns:n=%s' % (local, self.quoted(value), self.quoted(self.prefix[own][1]))
        return " " + (self.prefix[own][0] + ":" if colon else "") + local + "=" + self.quoted(value)

    def element(self, full, attributes, content, more=""):
        own, colon, local = full.rpartition(":")
        prefix = self.prefix[own][0] if colon else ""
        tag, declared = (prefix + ":" + local if prefix else local), ""
        if not colon and any(p == "" for p, _ in self.prefix.values()):
            # Of no namespace, where the default is one. No column of the schema's without a prefix has elements in it.
            declared = ' xmlns=""'
        blank = self.r.choice(["", "", " ", "\n"])
        if content == "" and self.r.random() < 0.5:
            return "<" + tag + declared + more + "".join(attributes) + blank + "/>"
        return "<" + tag + declared + more + "".join(attributes) + blank + ">" + content + "</" + tag + self.r.choice(["", " "]) + ">"


POOL = {}


def value(r, t):
    """Of each type some hundred are made, most others are taken from these: many records cost little then."""
    pool = POOL.setdefault(t, [])
    if len(pool) < 1000 or r.random() < 0.02:
        pool.append(fresh(r, t))
        return pool[-1]
    return pool[int(r.random() * len(pool))]


def fresh(r, t):
    kind = t[0]
    blank = r.choice(["", "", "", " ", "\n  "])
    if kind == "string":
        return r.choice(WORDS) + r.choice(WORDS)
    if r.random() < 0.04:
        return r.choice(["", " "])
    if kind == "decimal":
        n = r.randrange(10 ** r.randint(1, t[1]))
        digits = str(n).rjust(t[2] + 1, "0")
        text = r.choice(["", "-", "+"]) + digits[: len(digits) - t[2]] + "." + digits[len(digits) - t[2] :]
    elif kind in ("int32", "int64", "uint64"):
        bits = int(kind.lstrip("uint"))
        low, high = (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        n = r.choice([low, high]) if r.random() < 0.2 else r.randint(low, high) >> r.randrange(bits)
        text = ("%d.0" if r.random() < 0.05 else "%d") % n
    elif kind == "double":
        text = r.choice([repr(r.uniform(-1, 1) * 10.0 ** r.randint(-200, 200)), "NaN", "INF", "-INF", "0", "-0.0", "1e-400", "%d.%025d" % (r.randrange(99), r.randrange(10**25))])
    elif kind == "boolean":
        text = r.choice(["true", "false", "1", "0"])
    elif kind == "uuid":
        text = str(uuid.UUID(int=r.getrandbits(128)))
    else:
        text = "%04d-%02d-%02d" % (r.randint(1, 9999), r.randint(1, 12), r.randint(1, 28))
        if kind == "timestamptz":
            text += "T%02d:%02d:%02d" % (r.randrange(24), r.randrange(60), r.randrange(60)) + r.choice(["", ".5", ".%06d" % r.randrange(10**6)]) + r.choice(["Z", "+02:00", "-07:30"])
    return blank + text + blank


def content(w, fields, required=()):
    """Attributes, and what is within, in any order."""
    r = w.r
    attributes, inner, own = [], [], None
    for name, t in fields:
        if name not in required and r.random() < 0.12:
            continue
        if name == "#text":
            own = value(r, t)
        elif name.startswith("@"):
            attributes.append(w.attribute(name[1:], value(r, t)))
        elif t[0] == "list":
            inner.extend(one(w, name, t[1]) for _ in range(r.randrange(4)))
        else:
            inner.append(one(w, name, t))
    r.shuffle(attributes)
    r.shuffle(inner)
    out = []
    cuts = sorted(r.randrange(len(own) + 1) for _ in inner) if own is not None else [0] * len(inner)
    at = 0
    for part, cut in zip(inner, cuts):
        out.append(w.text(own[at:cut]) if own is not None else r.choice(["", "", "\n ", "<!-- c -->", "<?p?>"]))
        out.append(part)
        at = cut
    out.append(w.text(own[at:]) if own is not None else r.choice(["", "\n"]))
    return attributes, "".join(out)


def one(w, name, t):
    if w.r.random() < 0.05:
        return w.element(name, [], "", ' xmlns:xsi="%s" xsi:nil="%s"' % (XSI, w.r.choice(["true", "1", " true "])))
    if t[0] == "struct":
        return w.element(name, *content(w, t[1]))
    return w.element(name, [], w.text(value(w.r, t)))


ENCODINGS = ["utf-8"] * 6 + ["utf-8-sig", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252"]


def document(r, columns, namespaces):
    encoding = r.choice(ENCODINGS)
    w = Writer(r, namespaces, encoding)
    required = {source for _, source, _, nullable in columns if not nullable}
    attributes, inner = content(w, [(source, t) for _, source, t, _ in columns], required)
    # Of any namespace: the record's own name is not looked at.
    name = "order"
    text = "<" + name + w.root + "".join(attributes) + ">" + inner + "</" + name + ">"
    if encoding in LATIN:
        head = '<?xml version="1.0" encoding=%s?>' % w.r.choice(['"%s"', "'%s'"]) % LATIN[encoding]
    else:
        declared = {"utf-8": "UTF-8", "utf-8-sig": "utf-8"}.get(encoding, "UTF-16")
        head = r.choice(["", '<?xml version="1.0"?>', "<?xml version='1.0' encoding='%s' standalone='yes' ?>\r\n" % declared])
    text = head + text + r.choice(["", "\n", "<!-- end -->"])
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    return mark + text.encode(encoding)


MARKS = [b"<", b">", b"&", b"/", b'"', b"'", b"=", b":", b"<x/>", b"</o:item>", b"]]>", b"&#0;", b"&#xD800;", b"&nbsp;", b"<!DOCTYPE o>", b"\x00", b"\xff", b" ", b"<!--", b"xmlns:o='u'"]


def damaged(r, b):
    at = r.randrange(len(b))
    way = r.randrange(4)
    if way > 0 and b[:2] in (b"\xff\xfe", b"\xfe\xff"):
        # Character by character: half of one makes letters of others, and expat has those of the fourth edition of XML.
        encoding = "utf-16-le" if b[0] == 0xFF else "utf-16-be"
        b = damaged(r, b[2:].decode(encoding).encode())
        return "\ufeff".encode(encoding) + b.decode(errors="replace").encode(encoding)
    if way == 0:
        return b[:at]
    if way == 1:
        return b[:at] + b[at + 1 :]
    if way == 2:
        return b[:at] + b[at : at + r.randint(1, 30)] + b[at:]
    return b[:at] + r.choice(MARKS) + b[at + r.randrange(2) :]


def make(columns, namespaces, count, seed, damage):
    r = random.Random(seed)
    POOL.clear()
    for _ in range(count):
        payload = document(r, columns, namespaces)
        yield damaged(r, payload) if r.random() < damage else payload


# --- reading

# Letters of names since the fifth edition of XML; expat has those of the fourth. The last comes of damage.
OF_FIFTH = ["\U0001f30a", "\ufffd"]


class Unjudged(Refused):
    """It may be taken or not."""


def parses(payload):
    try:
        ET.fromstring(payload)
    except (ET.ParseError, ValueError, LookupError):
        return False
    return True


def has_dtd(payload):
    if b"DOCTYPE" not in payload.replace(b"\0", b""):
        return False
    seen = []
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = lambda *name: seen.append(name)
    parser.Parse(payload, True)
    return len(seen) > 0


def parses_as_fourth(payload):
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(payload[:2], "utf-8")
    other = payload
    for letter in OF_FIFTH:
        other = other.replace(letter.encode(encoding), "\u00e9".encode(encoding))
    return other != payload and parses(other)


LEAVES = {}
# Written by many for UTF-8; expat takes it for an encoding of one byte a character.
UTF8 = re.compile(rb"""^((?:\xef\xbb\xbf)?<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*["'])utf8(?=["'])""", re.I)
VERSION = re.compile(r"<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*([\"'])(?!1\.[0-9]+\1)")
BLANK = "".join(map(chr, range(33)))


def named(full, prefixes):
    """The name in the schema, and the namespace."""
    uri, brace, local = full[1:].partition("}") if full.startswith("{") else ("", "", full)
    return (prefixes[uri] + ":" + local if uri in prefixes else local), uri


def leaf(t, text):
    if t[0] == "string":
        return text
    text = text.strip(BLANK)
    if text == "":
        return None
    if t not in LEAVES:
        LEAVES[t] = reader(t)
    return LEAVES[t](text)


def own_attributes(e, prefixes):
    return [(*named(k, prefixes), v) for k, v in e.attrib.items() if not k.startswith("{" + XSI + "}")]


def cell(t, e, prefixes):
    if e.get("{%s}nil" % XSI, "").strip() in ("true", "1"):
        if len(e) or e.text:
            raise Refused("nil, and has content")
        if own_attributes(e, prefixes):
            raise Refused("nil, and has attributes")
        return None
    if t[0] == "struct":
        return row(t[1], e, prefixes)
    if own_attributes(e, prefixes):
        raise Refused("attributes")
    if len(e):
        raise Refused("elements")
    return leaf(t, e.text or "")


def row(fields, e, prefixes):
    types = dict(fields)
    out = {n: [] if t[0] == "list" else None for n, t in fields}
    met = {}

    def meet(name, uri):
        if name not in types:
            raise Refused("the schema has no " + name)
        listed = types[name][0] == "list"
        if name in met and (met[name] != uri or not listed):
            raise Refused(name + " twice")
        met[name] = uri
        return listed

    for name, uri, v in own_attributes(e, prefixes):
        meet("@" + name, uri)
        out["@" + name] = leaf(types["@" + name], v)
    for child in e:
        name, uri = named(child.tag, prefixes)
        if meet(name, uri):
            out[name].append(cell(types[name][1], child, prefixes))
        else:
            out[name] = cell(types[name], child, prefixes)
    text = (e.text or "") + "".join(c.tail or "" for c in e)
    if "#text" in types:
        out["#text"] = leaf(types["#text"], text)
    elif text.strip(BLANK) != "":
        raise Refused("text beside elements")
    return out


def read(columns, namespaces, payload):
    prefixes = {uri: prefix for prefix, uri in namespaces.items()}
    payload = UTF8.sub(rb"\1utf-8", payload)
    try:
        e = ET.fromstring(payload)
    except (ET.ParseError, ValueError, LookupError) as error:
        if parses_as_fourth(payload):
            raise Unjudged(str(error)) from None
        raise Refused(str(error)) from None
    head = payload[:200].decode({b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}.get(payload[:2], "utf-8-sig"), "replace")
    if has_dtd(payload):
        raise Refused("a DTD")
    if VERSION.match(head):
        # The specification has 1.x, expat any.
        raise Refused("version")
    cells = row([(source, t) for _, source, t, _ in columns], e, prefixes)
    for _, source, _, nullable in columns:
        if not nullable and cells[source] is None:
            raise Refused("null")
    return [cells[source] for _, source, _, _ in columns], (0, 0)
