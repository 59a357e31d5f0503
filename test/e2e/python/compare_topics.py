"""Compares a topic with its copy, both as librdkafka reads committed records. Arguments: bootstrap, source, copy, how.

A record is its timestamp, key, value and headers, null and empty told apart. `how`: `order`: each partition of the copy
holds the records of the same partition of the source, one behind the other. `bag`: the same records in any order.
`locator`: the copy's last three headers say where a record was in the source, and the rest is compared with what is there.
Prints JSON {records, copied, lost, doubled, foreign, differences, ranges}; `ranges`: by source partition, of the located.
"""

import hashlib
import json
import sys
from collections import Counter

from committed import records

bootstrap, source, copy, how = sys.argv[1:5]
LOCATOR = ["_twg_source_topic", "_twg_source_partition", "_twg_source_offset"]


def content(m, headers):
    digest = hashlib.sha256()
    for part in [str(m.timestamp()[1]).encode(), m.key(), m.value(), *[x for k, v in headers for x in (k.encode(), v)]]:
        digest.update(b"-" if part is None else b"x%d:" % len(part) + part)
    return digest.digest()[:12]


differences, lost, doubled, foreign, ranges = [], 0, 0, 0, {}


def differ(text):
    if len(differences) < 10:
        differences.append(text)


there = {(m.partition(), m.offset()): content(m, m.headers() or []) for m in records(bootstrap, source)}
copied = 0
if how == "locator":
    seen = Counter()
    for m in records(bootstrap, copy):
        copied += 1
        headers = m.headers() or []
        own, added = headers[:-3], headers[-3:]
        if [k for k, _ in added] != LOCATOR or added[0][1].decode() != source:
            foreign += 1
            continue
        place = (int(added[1][1]), int(added[2][1]))
        seen[place] += 1
        if there.get(place) != content(m, own):
            differ(f"{place} is another record in the copy")
    lost = sum(1 for place in there if place not in seen)
    doubled = sum(n - 1 for n in seen.values())
    for partition, offset in sorted(seen):
        r = ranges.setdefault(partition, [])
        if r and r[-1][1] == offset:
            r[-1][1] = offset + 1
        else:
            r.append([offset, offset + 1])
elif how == "order":
    behind = {}
    for m in records(bootstrap, copy):
        copied += 1
        behind.setdefault(m.partition(), []).append(content(m, m.headers() or []))
    wanted = {}
    for (partition, _), text in sorted(there.items()):
        wanted.setdefault(partition, []).append(text)
    for partition in sorted(set(wanted) | set(behind)):
        a, b = wanted.get(partition, []), behind.get(partition, [])
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            differ(f"partition {partition}: {len(a)} and {len(b)} records, the first difference at record {at}")
        lost += sum((Counter(a) - Counter(b)).values())
        doubled += sum((Counter(b) - Counter(a)).values())
else:
    bag = Counter()
    for m in records(bootstrap, copy):
        copied += 1
        bag[content(m, m.headers() or [])] += 1
    wanted = Counter(there.values())
    lost, doubled = sum((wanted - bag).values()), sum((bag - wanted).values())
print(json.dumps({
    "records": len(there), "copied": copied, "lost": lost, "doubled": doubled, "foreign": foreign,
    "differences": differences, "ranges": ranges,
}))
