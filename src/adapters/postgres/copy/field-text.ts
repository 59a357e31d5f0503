/**
 * Fields of a binary COPY for people: rows that a server refused, where the record that they came from has no text. What
 * has no plain form stands as the bytes that were sent, in base64.
 */
import type { TargetColumn } from "./table-rows.ts";

const UTF8 = new TextDecoder();
/** 2000-01-01, from which PostgreSQL counts. */
const EPOCH_MS = 946_684_800_000;
const DAY_MS = 86_400_000;
/** Beyond it a Date has no text, and infinity is there as well. */
const MOST_MS = 8_640_000_000_000_000;
const NEGATIVE = 0x4000;

/** By name of the column. Null: SQL's null. */
export function fieldTexts(
  names: readonly string[],
  targets: readonly Pick<TargetColumn, "type">[],
  fields: readonly (Uint8Array | null)[],
): Record<string, string | null> {
  return Object.fromEntries(
    names.map((name, i) => {
      const bytes = fields[i] ?? null;
      return [
        name,
        bytes === null ? null : (plainText(targets[i]!.type, bytes) ?? `base64:${bytes.toBase64()}`),
      ];
    }),
  );
}

function plainText(type: string, bytes: Uint8Array): string | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (type.replace(/\(.*\)/, "")) {
    case "text":
    case "character varying":
    case "json":
      return UTF8.decode(bytes);
    case "jsonb":
      // A byte of version stands before the text.
      return UTF8.decode(bytes.subarray(1));
    case "boolean":
      return bytes[0] === 1 ? "true" : "false";
    case "smallint":
      return String(view.getInt16(0));
    case "integer":
      return String(view.getInt32(0));
    case "bigint":
      return String(view.getBigInt64(0));
    case "real":
      return String(view.getFloat32(0));
    case "double precision":
      return String(view.getFloat64(0));
    case "uuid":
      return bytes.toHex().replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    case "numeric":
      return numericText(view);
    case "date":
      return dateText(view.getInt32(0));
    case "timestamp with time zone":
      return timestampText(view.getBigInt64(0), "Z");
    case "timestamp without time zone":
      return timestampText(view.getBigInt64(0), "");
    default:
      return null;
  }
}

/** The inverse of `numericBytes`: digits of base 10,000, of which the first stands for 10,000^weight. */
function numericText(view: DataView): string | null {
  const [count, weight, sign, scale] = [0, 2, 4, 6].map((at) => view.getUint16(at)) as [
    number,
    number,
    number,
    number,
  ];
  if (sign !== 0 && sign !== NEGATIVE) return null;
  const signed = (weight << 16) >> 16;
  const digit = (power: number): string => {
    const i = signed - power;
    return String(i >= 0 && i < count ? view.getUint16(8 + 2 * i) : 0).padStart(4, "0");
  };
  let whole = "";
  for (let power = Math.max(0, signed); power >= 0; power--) whole += digit(power);
  let fraction = "";
  for (let power = -1; fraction.length < scale; power--) fraction += digit(power);
  const text = whole.replace(/^0+(?=\d)/, "");
  return `${sign === NEGATIVE ? "-" : ""}${text}${scale === 0 ? "" : `.${fraction.slice(0, scale)}`}`;
}

function dateText(days: number): string | null {
  const ms = EPOCH_MS + days * DAY_MS;
  return Math.abs(ms) > MOST_MS ? null : new Date(ms).toISOString().slice(0, -"T00:00:00.000Z".length);
}

function timestampText(us: bigint, zone: string): string | null {
  const micros = ((us % 1000n) + 1000n) % 1000n;
  const ms = EPOCH_MS + Number((us - micros) / 1000n);
  if (Math.abs(ms) > MOST_MS) return null;
  return `${new Date(ms).toISOString().slice(0, -1)}${String(micros).padStart(3, "0")}${zone}`;
}
