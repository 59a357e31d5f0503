"""Orders as JSON without a schema, and as XML documents; and what landed of them in one table, by pyarrow.

  text_orders.py produce BOOTSTRAP {"json": TOPIC, "xml": TOPIC, "first": 0, "records": 1000, "note": false}
  text_orders.py check TYPED_FOLDER REJECTS_FOLDER

Even orders are JSON, odd ones XML. Every 25th is spoiled in one of four ways. All fields follow from n, so that a row shows
whether it is right; with "note" JSON has one field more.
"""

import glob
import json
import sys

SPOILED = ["type", "truncated", "unknown", "twice"]
CODES = {"type": "decode.type", "unknown": "decode.unknown_field", "twice": "decode.duplicate_key"}


def kind(n):
    return SPOILED[n // 25 % 4] if n % 25 == 13 else "good"


def name(n):
    return f'order {n} é <&> "' if n % 5 else ""


def big(n):
    return 2**53 + 1 + n


def city(n):
    return None if n % 3 == 0 else "Köln"


def qtys(n):
    return [n + i for i in range(n % 4)]


def note(n):
    return None if n % 8 == 0 else "x" * (n % 7)


def json_value(n, with_note):
    o = {"id": n, "name": name(n), "price": n / 4, "big": big(n), "to": {"city": city(n)}, "qtys": qtys(n), "ok": n % 2 == 0}
    if with_note:
        o["note"] = note(n)
    what = kind(n)
    if what == "type":
        o["qtys"] = [1, "x"]
    if what == "unknown":
        o["to"]["zip"] = 1
    text = json.dumps(o, ensure_ascii=n % 10 == 0)
    if what == "twice":
        text = text[:-1] + ', "id": 1}'
    return (text[:-1] if what == "truncated" else text).encode()


def escaped(s):
    return s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def xml_value(n):
    what = kind(n)
    p = "o:" if n % 4 == 1 else ""
    inner = f"<{p}name>{escaped(name(n))}</{p}name><{p}price>{n / 4}</{p}price>"
    if city(n) is not None:
        inner += f"<{p}to><{p}city><![CDATA[{city(n)}]]></{p}city></{p}to>"
    inner += "".join(f"<{p}qty>{q}</{p}qty>" for q in qtys(n))
    if what == "type":
        inner += f"<{p}qty>x</{p}qty>"
    if what == "unknown":
        inner += f"<{p}zip>1</{p}zip>"
    if what == "twice":
        inner += f"<{p}name/>"
    space = 'xmlns:o="urn:orders"' if p else 'xmlns="urn:orders"'
    head = '<?xml version="1.0" encoding="UTF-8"?>' if n % 3 else ""
    end = "" if what == "truncated" else f"</{p}order>"
    return f'{head}<{p}order {space} id="{n}">{inner}{end}'.encode()


def produce(bootstrap, wanted):
    from confluent_kafka import Producer

    p = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    bad = 0
    for n in range(wanted["first"], wanted["first"] + wanted["records"]):
        bad += kind(n) != "good"
        value = xml_value(n) if n % 2 else json_value(n, wanted["note"])
        p.produce(wanted["xml" if n % 2 else "json"], key=str(n), value=value)
        p.poll(0)
    p.flush()
    print(json.dumps({"good": wanted["records"] - bad, "bad": bad}))


def rows_of(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pq.read_table(f, partitioning=None) for f in glob.glob(folder + "/*.parquet")]
    return pa.concat_tables(tables, promote_options="default").to_pylist() if tables else []


def check(typed, rejects):
    wrong = []
    ids = []
    noted = 0
    for r in rows_of(typed):
        n = r["id"]
        ids.append(n)
        to = (r["to"] or {}).get("city")
        seen = (r["name"], r["price"], to, r["qtys"], r["big"], r["ok"])
        want = (name(n), n / 4, city(n), qtys(n), None if n % 2 else big(n), None if n % 2 else True)
        noted += r.get("note") is not None
        if kind(n) != "good" or seen != want or r.get("note") not in (None, note(n)):
            wrong.append(f"{n}: {seen}")
    refused = []
    for r in rows_of(rejects):
        n = int(r["_twg_source_key"])
        refused.append(n)
        code = CODES.get(kind(n), "decode.syntax" if n % 2 else "decode.truncated")
        if r["code"] != code or n % 2 == 1 and r["_twg_source_value"] != xml_value(n):
            wrong.append(f"reject {n}: {r['code']} {r['path']} {r['message']}")
    doubled = len(ids) - len(set(ids)) + len(refused) - len(set(refused))
    print(json.dumps({"rows": len(ids), "rejects": len(refused), "doubled": doubled, "noted": noted, "wrong": wrong[:5]}))


if sys.argv[1] == "produce":
    produce(sys.argv[2], json.loads(sys.argv[3]))
else:
    check(sys.argv[2], sys.argv[3])
