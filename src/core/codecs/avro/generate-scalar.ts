/** The code that reads one primitive or fixed value and stores it in a column, for every pair of written and read type. */
import type { Generator } from "./generate.ts";
import type { Slot } from "./layout.ts";
import type { Scalar } from "./plan.ts";
import { DAY_NS, DAY_US } from "./runtime.ts";
import { MOST_PRECISION, type ScalarKey, scalarKey } from "./type-map.ts";

type Store = (g: Generator, wire: Scalar, slot: Slot, row: string, reader: Scalar) => void;

export function storeScalar(g: Generator, wire: Scalar, reader: Scalar, slot: Slot, row: string): void {
  STORES[scalarKey(reader)](g, wire, slot, row, reader);
}

/** The varint to words of the column, straight if it is written so. */
const storeLong: Store = (g, wire, { id }, row) => {
  const { bytes, p, end } = g.source;
  if (wire.kind === "int") {
    g.int();
    g.add(`i${id}[2 * ${row}] = x; i${id}[2 * ${row} + 1] = x >> 31;`);
    return;
  }
  g.add(
    `if (${p} < ${end} && (x = ${bytes}[${p}]) < 128) { ${p}++; x = (x >>> 1) ^ -(x & 1); i${id}[2 * ${row}] = x; i${id}[2 * ${row} + 1] = x >> 31; }`,
    `else { ${p} = long(${bytes}, ${p}, ${end}, i${id}, 2 * ${row}); if (${p} < 0) break run; }`,
  );
};

const storeInt: Store = (g, _, { id }, row) => {
  g.int();
  g.add(`i${id}[${row}] = x;`);
};

/** A number of days' parts, 0 up to `most`. */
function storeTime(most: number, factor: number): Store {
  return (g, wire, { id }, row) => {
    if (wire.kind === "int") {
      g.int();
      g.add("l = x; h = x >> 31;");
    } else g.long();
    g.add(
      `if (h < 0) break run; x = h * 4294967296 + (l >>> 0); if (x > ${most}) break run;`,
      factor === 1 ? "" : `x *= ${factor}; l = x | 0; h = Math.floor(x / 4294967296);`,
      `i${id}[2 * ${row}] = l; i${id}[2 * ${row} + 1] = h;`,
    );
  };
}

const storeFloat: Store = (g, wire, { id }, row) => {
  if (wire.kind === "int") {
    g.int();
    g.add(`R.float[0] = x; i${id}[${row}] = R.floatWord[0];`);
  } else if (wire.kind === "long") {
    g.long();
    g.add(`i${id}[${row}] = R.floatBits(l, h);`);
  } else {
    const { view, p } = g.source;
    g.need(4);
    g.add(`i${id}[${row}] = ${view}.getInt32(${p}, true); ${p} += 4;`);
  }
};

const storeDouble: Store = (g, wire, { id }, row) => {
  const { view, p } = g.source;
  const put = `i${id}[2 * ${row}] = R.doubleWords[0]; i${id}[2 * ${row} + 1] = R.doubleWords[1];`;
  if (wire.kind === "int") {
    g.int();
    g.add(`R.double[0] = x; ${put}`);
  } else if (wire.kind === "long") {
    g.long();
    g.add(`R.double[0] = h * 4294967296 + (l >>> 0); ${put}`);
  } else if (wire.kind === "float") {
    g.need(4);
    g.add(`R.floatWord[0] = ${view}.getInt32(${p}, true); ${p} += 4; R.double[0] = R.float[0]; ${put}`);
  } else {
    g.need(8);
    g.add(
      `i${id}[2 * ${row}] = ${view}.getInt32(${p}, true); i${id}[2 * ${row} + 1] = ${view}.getInt32(${p} + 4, true); ${p} += 8;`,
    );
  }
};

/** How many bytes the value has to `x`. */
function sized(g: Generator, wire: Scalar): void {
  if (wire.kind !== "fixed") {
    g.length();
    return;
  }
  g.need(wire.size);
  g.add(`x = ${wire.size};`);
}

const storeBytes: Store = (g, wire, slot, row) => {
  sized(g, wire);
  g.copy(slot, row);
};

const storeFixed: Store = (g, wire, slot, row) => {
  if (slot.form === "bytes") {
    storeBytes(g, wire, slot, row, wire);
    return;
  }
  const { bytes, p } = g.source;
  const n = slot.type.id === "fixed" ? slot.type.bytes : 0;
  g.need(n);
  g.add(
    n > 32
      ? `R.copy(${bytes}, ${p}, ${n}, u${slot.id}, ${n} * ${row});`
      : `for (x = 0; x < ${n}; x++) u${slot.id}[${n} * ${row} + x] = ${bytes}[${p} + x];`,
    `${p} += ${n};`,
  );
};

const storeUuid: Store = (g, wire, slot, row, reader) => {
  if (wire.kind === "fixed") {
    storeFixed(g, wire, slot, row, reader);
    return;
  }
  const { bytes, p } = g.source;
  g.length();
  g.add(`if (!R.uuid(${bytes}, ${p}, x, u${slot.id}, 16 * ${row})) break run;`, `${p} += x;`);
};

const storeDecimal: Store = (g, wire, slot, row, reader) => {
  const { logical } = reader;
  if (logical?.as !== "decimal" || logical.precision > MOST_PRECISION) {
    g.spelled({ op: "scalar", wire, reader }, slot, row, 0);
    return;
  }
  const { bytes, p } = g.source;
  sized(g, wire);
  g.add(
    `if (!R.decimal(${bytes}, ${p}, x, i${slot.id}, 4 * ${row}, ${g.limit(logical.precision)})) break run;`,
    `${p} += x;`,
  );
};

const STORES: Readonly<Record<ScalarKey, Store>> = {
  null: (g, _, slot, row) => g.nothing(slot, row),
  boolean: (g, _, { id }, row) => {
    const { bytes, p } = g.source;
    g.need(1);
    g.add(
      `x = ${bytes}[${p}++]; if (x > 1) break run;`,
      `if (x === 1) u${id}[${row} >> 3] |= 1 << (${row} & 7); else u${id}[${row} >> 3] &= ~(1 << (${row} & 7));`,
    );
  },
  int: storeInt,
  date: storeInt,
  long: storeLong,
  "timestamp-ms": storeLong,
  "timestamp-us": storeLong,
  "timestamp-ns": storeLong,
  "local-timestamp-ms": storeLong,
  "local-timestamp-us": storeLong,
  "local-timestamp-ns": storeLong,
  "time-ms": storeTime(DAY_US / 1000 - 1, 1000),
  "time-us": storeTime(DAY_US - 1, 1),
  "time-ns": storeTime(DAY_NS - 1, 1),
  float: storeFloat,
  double: storeDouble,
  bytes: storeBytes,
  string: storeBytes,
  fixed: storeFixed,
  uuid: storeUuid,
  decimal: storeDecimal,
  "big-decimal": (g, wire, slot, row, reader) => g.spelled({ op: "scalar", wire, reader }, slot, row, 0),
  duration: (g, wire, { id }, row) => {
    const { bytes, p } = g.source;
    sized(g, wire);
    g.add(`if (!R.duration(${bytes}, ${p}, i${id}, 4 * ${row})) break run;`, `${p} += 12;`);
  },
};
