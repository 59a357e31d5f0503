/**
 * JSON records of nested types, cut into cells: AssemblyScript with SIMD, compiled into src/core/codecs/json/record-module.ts
 * by `bun scripts/generate.ts`. What it does is said, slower, by json/record-cells.ts; tests hold it against that.
 * Whatever it does not know (maps, raw JSON, unknown and repeated keys, faults) it leaves to it.
 *
 * All memory belongs to the caller (cell-memory.ts), which says how nodes and members lie in it.
 */
import { pack, same } from "./bytes";
import { FALSE, NULL, NUMBER, spareAt, STRING, TRUE, unescapeTo, value, valueKind, valueStart, valueStop } from "./json-values";

export { spareAt };

const LEAF: i32 = 0;
const STRUCT: i32 = 1;
const LIST: i32 = 2;

/** Bytes of a node, and where in it: see cell-memory.ts. */
const NODE: usize = 48;
const KINDS: usize = 4;
const STARTS: usize = 8;
const ENDS: usize = 12;
const USED: usize = 16;
const CAPACITY: usize = 20;
const CHILD: usize = 24;
const MEMBERS: usize = 28;
const NULLABLE: usize = 32;
const KEPT: usize = 36;

/** Bytes of a member of a struct. */
const MEMBER: usize = 32;
const KEY_BYTES: usize = 4;
const MEMBER_NODE: usize = 8;
const SEEN: usize = 12;

/** Positions are told relative to it. */
let text: usize = 0;
/** Behind the record that is read. */
let limit: usize = 0;
let stamp: i32 = 0;
/** The node whose cells were full, so that the last call stopped; 0: none. */
export let full: usize = 0;

// @ts-ignore: decorator
@inline
function blanks(at: usize): usize {
  let c: u8;
  while ((c = load<u8>(at)) == 32 || c == 10 || c == 13 || c == 9) at++;
  return at;
}

/**
 * Reads records from `first` on into the cells of `nodes`; gives the number of the one before which it stopped: `count`
 * if it read them all. Record i is the text from starts[i] to ends[i] (int32, relative to `textAt`).
 */
export function readRecords(
  textAt: usize,
  starts: usize,
  ends: usize,
  first: i32,
  count: i32,
  nodes: usize,
  nodeCount: i32,
  spare: usize,
): i32 {
  text = textAt;
  full = 0;
  unescapeTo(spare);
  const behind = nodes + <usize>nodeCount * NODE;
  for (let i = first; i < count; i++) {
    limit = textAt + <usize>load<i32>(ends + (<usize>i << 2));
    const kept = spareAt;
    for (let n = nodes; n < behind; n += NODE) store<i32>(n, load<i32>(n, USED), KEPT);
    let at = blanks(textAt + <usize>load<i32>(starts + (<usize>i << 2)));
    if (load<u8>(at) == 123) at = item(nodes, at);
    else at = 0;
    if (at != 0) at = blanks(at);
    // Behind the limit stands the next record: what was read on into it is not of this one.
    if (at < limit || (at > limit && !onlyBlanks(at))) {
      for (let n = nodes; n < behind; n += NODE) store<i32>(n, load<i32>(n, KEPT), USED);
      unescapeTo(kept);
      return i;
    }
  }
  return count;
}

/** Whether [limit, at) is blank: then the record ended before. */
function onlyBlanks(at: usize): bool {
  for (let i = limit; i < at; i++) {
    const c = load<u8>(i);
    if (c != 32 && c != 10 && c != 13 && c != 9) return false;
  }
  return true;
}

/** Reads the value at `at` into the cells of its node; gives what is behind it, 0: it is left to others. */
function item(node: usize, at: usize): usize {
  if (at >= limit) return 0;
  const used = load<i32>(node, USED);
  if (used == load<i32>(node, CAPACITY)) {
    full = node;
    return 0;
  }
  const form = load<i32>(node);
  const cell = <usize>used << 2;
  if (form == LEAF) {
    at = value(at);
    if (at == 0 || at > limit) return 0;
    if (valueKind == NULL) {
      if (load<i32>(node, NULLABLE) == 0) return 0;
      store<i32>(<usize>load<i32>(node, STARTS) + cell, -1);
      store<i32>(<usize>load<i32>(node, ENDS) + cell, -1);
    } else {
      if (((load<i32>(node, KINDS) >> valueKind) & 1) == 0) return 0;
      store<i32>(<usize>load<i32>(node, STARTS) + cell, <i32>(valueStart - text));
      store<i32>(<usize>load<i32>(node, ENDS) + cell, <i32>(valueStop - text));
    }
    store<i32>(node, used + 1, USED);
    return at;
  }
  const c = load<u8>(at);
  if (c == 110) {
    if (load<u32>(at) != 0x6c6c756e || load<i32>(node, NULLABLE) == 0) return 0;
    return absent(node, -1) ? at + 4 : 0;
  }
  store<i32>(node, used + 1, USED);
  if (form == STRUCT) {
    store<i32>(<usize>load<i32>(node, STARTS) + cell, 1);
    return c == 123 ? object(node, at + 1) : 0;
  }
  return form == LIST && c == 91 ? list(node, cell, at + 1) : 0;
}

/** A null cell (-1: null, -2: missing), and of a struct one in each of its members. False: cells are full. */
function absent(node: usize, cause: i32): bool {
  const used = load<i32>(node, USED);
  if (used == load<i32>(node, CAPACITY)) {
    full = node;
    return false;
  }
  const cell = <usize>used << 2;
  const form = load<i32>(node);
  store<i32>(<usize>load<i32>(node, STARTS) + cell, cause);
  if (form == LEAF) store<i32>(<usize>load<i32>(node, ENDS) + cell, cause);
  store<i32>(node, used + 1, USED);
  if (form != STRUCT) return true;
  let member = <usize>load<i32>(node, CHILD);
  for (let i = load<i32>(node, MEMBERS); i > 0; i--) {
    if (!absent(<usize>load<i32>(member, MEMBER_NODE), cause)) return false;
    member += MEMBER;
  }
  return true;
}

function list(node: usize, cell: usize, at: usize): usize {
  const child = <usize>load<i32>(node, CHILD);
  let count: i32 = 0;
  at = blanks(at);
  if (load<u8>(at) == 93) at++;
  else {
    for (;;) {
      at = item(child, at);
      if (at == 0) return 0;
      count++;
      at = blanks(at);
      const c = load<u8>(at);
      if (c != 44 && c != 93) return 0;
      at++;
      if (c == 93) break;
      at = blanks(at);
    }
  }
  store<i32>(<usize>load<i32>(node, STARTS) + cell, count);
  return at;
}

function object(node: usize, at: usize): usize {
  const members = <usize>load<i32>(node, CHILD);
  const n = load<i32>(node, MEMBERS);
  const behind = members + <usize>n * MEMBER;
  const mine = ++stamp;
  let found: i32 = 0;
  let next = members;
  at = blanks(at);
  if (load<u8>(at) == 125) at++;
  else {
    for (;;) {
      // Most objects have their keys in one order.
      let member = next;
      if (member == behind || !same(at, <usize>load<i32>(member), load<i32>(member, KEY_BYTES))) {
        member = members;
        while (member < behind && !same(at, <usize>load<i32>(member), load<i32>(member, KEY_BYTES))) member += MEMBER;
        if (member == behind) return 0;
      }
      if (load<i32>(member, SEEN) == mine) return 0;
      store<i32>(member, mine, SEEN);
      found++;
      at = blanks(at + <usize>load<i32>(member, KEY_BYTES));
      if (load<u8>(at) != 58) return 0;
      at = item(<usize>load<i32>(member, MEMBER_NODE), blanks(at + 1));
      if (at == 0) return 0;
      next = member + MEMBER;
      at = blanks(at);
      const c = load<u8>(at);
      if (c != 44 && c != 125) return 0;
      at++;
      if (c == 125) break;
      at = blanks(at);
    }
  }
  if (found == n) return at;
  for (let member = members; member < behind; member += MEMBER) {
    if (load<i32>(member, SEEN) == mine) continue;
    const child = <usize>load<i32>(member, MEMBER_NODE);
    if (load<i32>(child, NULLABLE) == 0 || !absent(child, -2)) return 0;
  }
  return at;
}

/** The first `cells` cells of a leaf; see `pack`. */
export function packCells(node: usize, cells: i32, out: usize, offsets: usize, base: i32): i32 {
  return pack(text, <usize>load<i32>(node, STARTS), <usize>load<i32>(node, ENDS), 4, cells, out, offsets, base);
}
