/**
 * Schema resolution (specification 1.12): a writer's type and a reader's to a plan. What can never fit is refused here;
 * what does not fit in a branch of a writer's union only refuses the values of that branch.
 */
import { DecodeError } from "../record-codec.ts";
import { defaultBytes } from "./default-bytes.ts";
import type { Plan, RecordPlan, Scalar, Step } from "./plan.ts";
import {
  type AvroField,
  type AvroType,
  branchNames,
  type EnumType,
  type FixedType,
  isNamed,
  type Logical,
  leastBytes,
  nameOf,
  optional,
  type PrimitiveName,
  type RecordType,
  simpleName,
  type UnionType,
} from "./schema.ts";

const PROMOTIONS: Readonly<Partial<Record<PrimitiveName, readonly PrimitiveName[]>>> = {
  int: ["long", "float", "double"],
  long: ["float", "double"],
  float: ["double"],
  string: ["bytes"],
  bytes: ["string"],
};

/** Throws a DecodeError of decode.schema that says where the two do not go together. */
export function resolve(writer: AvroType, reader: AvroType): Plan {
  return new Resolver().plan(writer, reader);
}

interface Seen {
  readonly writer: RecordType;
  readonly reader: RecordType;
  readonly plan: RecordPlan;
}

class Resolver {
  /** Records that have a plan or are at it. */
  readonly #seen: Seen[] = [];
  readonly #byWriter = new Map<RecordType, Map<RecordType, RecordPlan>>();
  readonly #place: string[] = [];

  plan(writer: AvroType, reader: AvroType): Plan {
    if (writer.kind === "union")
      return {
        op: "union",
        branches: writer.branches.map((b) => this.#attempt(() => this.#ofBranch(b, writer, reader))),
      };
    if (reader.kind === "union") return this.#intoUnion(writer, reader);
    return this.#same(writer, reader);
  }

  #refuse(reason: string): never {
    throw new DecodeError("decode.schema", this.#place.join("."), reason);
  }

  #mismatch(writer: AvroType, reader: AvroType): never {
    return this.#refuse(`the writer's ${told(writer)} does not go into the reader's ${told(reader)}`);
  }

  #attempt(inner: () => Plan): Plan {
    const kept = this.#seen.length;
    const depth = this.#place.length;
    try {
      return inner();
    } catch (e) {
      if (!(e instanceof DecodeError)) throw e;
      // Plans that were begun inside are half done.
      for (const s of this.#seen.splice(kept)) this.#byWriter.get(s.writer)?.delete(s.reader);
      this.#place.length = depth;
      return { op: "fault", reason: e.message };
    }
  }

  #ofBranch(branch: AvroType, writer: UnionType, reader: AvroType): Plan {
    // The same union on both sides: each branch is its own, whatever an earlier one could take.
    if (reader === writer) return this.#into(reader, writer.branches.indexOf(branch), branch);
    return this.plan(branch, reader);
  }

  #intoUnion(writer: AvroType, reader: UnionType): Plan {
    const index = this.#choose(writer, reader);
    return index < 0 ? this.#mismatch(writer, reader) : this.#into(reader, index, writer);
  }

  #into(reader: UnionType, index: number, writer: AvroType): Plan {
    const target = reader.branches[index]!;
    if (target.kind === "null") return { op: "null" };
    const plan = this.plan(writer, target);
    const members = reader.branches.filter((b) => b.kind !== "null");
    if (members.length === 1) return plan;
    return { op: "branch", member: members.indexOf(target), name: branchNames(reader)[index]!, plan };
  }

  /** The reader's branch: the same type before one of the same simple name, that before one by promotion. */
  #choose(writer: AvroType, reader: UnionType): number {
    const by = (fits: (b: AvroType) => boolean) => reader.branches.findIndex(fits);
    const exact = by((b) => b.kind === writer.kind && nameOf(b) === nameOf(writer));
    if (exact >= 0) return exact;
    const named = by((b) => b.kind === writer.kind && namesMatch(writer, b));
    if (named >= 0) return named;
    return by((b) => !isNamed(b) && promotes(writer.kind, b.kind));
  }

  #same(writer: AvroType, reader: AvroType): Plan {
    switch (writer.kind) {
      case "record":
        return reader.kind === "record" ? this.#record(writer, reader) : this.#mismatch(writer, reader);
      case "enum":
        return reader.kind === "enum" && namesMatch(writer, reader)
          ? enumPlan(writer, reader)
          : this.#mismatch(writer, reader);
      case "array":
        if (reader.kind !== "array") return this.#mismatch(writer, reader);
        return {
          op: "array",
          items: this.#within("items", () => this.plan(writer.items, reader.items)),
          least: leastBytes(writer.items),
        };
      case "map":
        if (reader.kind !== "map") return this.#mismatch(writer, reader);
        return {
          op: "map",
          values: this.#within("values", () => this.plan(writer.values, reader.values)),
          least: 1 + leastBytes(writer.values),
        };
      case "union":
        return this.plan(writer, reader);
      default:
        return this.#scalar(writer, reader);
    }
  }

  #scalar(writer: Scalar, reader: AvroType): Plan {
    if (writer.kind === "null" && reader.kind === "null") return { op: "null" };
    const fits =
      writer.kind === "fixed"
        ? reader.kind === "fixed" && reader.size === writer.size && namesMatch(writer, reader)
        : writer.kind === reader.kind || promotes(writer.kind, reader.kind);
    if (!fits) return this.#mismatch(writer, reader);
    const target = reader as Scalar;
    if (writer.logical !== null && target.logical !== null && !alike(writer.logical, target.logical))
      return this.#mismatch(writer, reader);
    return { op: "scalar", wire: writer, reader: target };
  }

  #within<T>(place: string, inner: () => T): T {
    this.#place.push(place);
    const out = inner();
    this.#place.pop();
    return out;
  }

  #record(writer: RecordType, reader: RecordType): Plan {
    const known = this.#byWriter.get(writer)?.get(reader);
    if (known !== undefined) return known;
    const plan: RecordPlan = { op: "record", reader, steps: [], defaults: [] };
    this.#seen.push({ writer, reader, plan });
    const readers = this.#byWriter.get(writer) ?? new Map<RecordType, RecordPlan>();
    this.#byWriter.set(writer, readers.set(reader, plan));
    const byWriter = matchFields(writer, reader);
    for (const f of writer.fields)
      plan.steps.push(this.#within(f.name, () => this.#step(f, byWriter, reader)));
    const given = new Set(byWriter.values());
    for (const [i, f] of reader.fields.entries()) {
      if (given.has(i)) continue;
      this.#within(f.name, () => this.#default(plan, i, f));
    }
    return plan;
  }

  #step(f: AvroField, byWriter: ReadonlyMap<AvroField, number>, reader: RecordType): Step {
    const field = byWriter.get(f) ?? null;
    const plan = field === null ? resolve(f.type, f.type) : this.plan(f.type, reader.fields[field]!.type);
    return { name: f.name, field, plan };
  }

  #default(plan: RecordPlan, field: number, f: AvroField): void {
    if (f.fallback === undefined)
      this.#refuse("the writer has no such field, and the reader no default for it");
    const bytes = defaultBytes(f.type, f.fallback);
    if (typeof bytes === "string") return this.#refuse(`the default is none of ${told(f.type)}: ${bytes}`);
    plan.defaults.push({ field, bytes, plan: this.plan(f.type, f.type) });
  }
}

function promotes(from: AvroType["kind"], to: AvroType["kind"]): boolean {
  return PROMOTIONS[from as PrimitiveName]?.includes(to as PrimitiveName) ?? false;
}

function namesMatch(writer: AvroType, reader: AvroType): boolean {
  if (!isNamed(writer) || !isNamed(reader)) return true;
  return (
    simpleName(writer.name) === simpleName(reader.name) ||
    reader.aliases.some((a) => a === writer.name || a === simpleName(writer.name))
  );
}

/** The reader's fields by the writer's: by name, else by an alias of the reader's. */
function matchFields(writer: RecordType, reader: RecordType): Map<AvroField, number> {
  const byName = new Map(writer.fields.map((f) => [f.name, f]));
  const out = new Map<AvroField, number>();
  for (const [i, f] of reader.fields.entries()) {
    const name = [f.name, ...f.aliases].find((n) => byName.has(n));
    const from = name === undefined ? undefined : byName.get(name);
    if (from !== undefined && !out.has(from)) out.set(from, i);
  }
  return out;
}

function enumPlan(writer: EnumType, reader: EnumType): Plan {
  const known = new Set(reader.symbols);
  return { op: "enum", symbols: writer.symbols.map((s) => (known.has(s) ? s : reader.fallback)), reader };
}

/** Units, zones, precisions and scales must agree: other bytes of the same type mean other values. */
function alike(a: Logical, b: Logical): boolean {
  return JSON.stringify(Object.entries(a)) === JSON.stringify(Object.entries(b));
}

function told(type: AvroType): string {
  if (type.kind === "union") {
    const inner = optional(type);
    if (inner !== null) return `optional ${told(inner)}`;
    return `union of ${type.branches.map(nameOf).join(", ")}`;
  }
  if (isNamed(type)) return `${type.kind} ${(type as FixedType | EnumType | RecordType).name}`;
  const logical = "logical" in type ? type.logical : null;
  return logical === null ? type.kind : `${type.kind} (${logicalText(logical)})`;
}

function logicalText(l: Logical): string {
  if (l.as === "decimal") return `decimal ${l.precision},${l.scale}`;
  return "unit" in l ? `${l.as} ${l.unit}` : l.as;
}
