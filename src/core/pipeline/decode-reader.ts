/** Payloads of a batch to columns, by the schema that each names, wherever a batch is decoded. It knows no table. */
import { Framed } from "../codecs/framing/framed.ts";
import type { Framing } from "../codecs/framing/framing.ts";
import type { DecodeFault } from "../codecs/record-codec.ts";
import type { RawBatch } from "../records/raw-batch.ts";
import { builderOf } from "../types/column-builder.ts";
import type { DecodedPart, Part } from "./decode-keys.ts";
import type { RefusedRecord } from "./derived.ts";
import { type Known, refText } from "./known-schema.ts";
import { type KnownSchemas, MOST_ASKED, type Named } from "./known-schemas.ts";
import { goodRows, payloadsOf, rowsBySlot } from "./payload-rows.ts";
import type { ColumnsOfSchema } from "./union-column.ts";

export interface ReaderParts {
  readonly schemas: KnownSchemas;
  /** Null: keys are not decoded. */
  readonly framing: (topic: string, part: Part) => Framing | null;
  /** Batches that wait behind the one at hand: what they name and nobody knows is asked for with it. */
  readonly waiting: () => readonly RawBatch[];
}

/** Rows of one schema. */
export interface DecodedGroup extends ColumnsOfSchema {
  readonly known: Known;
}

/** A field that an inferred schema does not have yet. */
export interface News {
  readonly known: Known;
  /** Of the batch: records with such fields, the first ones. */
  readonly rows: number[];
  readonly reason: string;
}

/** As many as a sample has records. */
const MOST_NEWS = 1_000;

/** Looks at the schemas of a piece before it is read: may change which of them are of use, or say what to wait for. */
type LookAt = (known: Known[], part: Part) => (() => Promise<void>) | null;

export class DecodeReader {
  readonly #p: ReaderParts;
  readonly #framings = new Map<string, Framing | null>();
  readonly #framed = new Framed();
  /** The first of a batch; whoever reads one sets it to null before. */
  news: News | null = null;

  constructor(parts: ReaderParts) {
    this.#p = parts;
  }

  /** Null: all of the part was read; columns are valid until the next batch is. Else what to wait for before it is tried again. */
  read(
    batch: RawBatch,
    part: Part,
    out: DecodedPart<DecodedGroup>,
    lookAt: LookAt = () => null,
  ): (() => Promise<void>) | null {
    const { topic } = batch.stream;
    const { schemas } = this.#p;
    const framing = this.#framing(topic, part);
    if (framing === null) return null;
    const from = { column: batch[part], headers: batch.headers, rows: batch.rows };
    for (let first = 0; first < batch.rows; ) {
      const framed = this.#framed;
      const next = framing(from, first, framed);
      const known: Known[] = [];
      for (const named of namedBy(framed, topic, part)) {
        const one = schemas.get(named);
        if (one === undefined) return () => schemas.load(this.#unknown(batch, part));
        known.push(one);
      }
      for (const { row, reason: message } of framed.faults)
        out.refused.push({ row: first + row, code: "decode.framing", path: "", message, schemaId: null });
      const wait = lookAt(known, part);
      if (wait !== null) return wait;
      const rows = rowsBySlot(framed);
      for (const [slot, one] of known.entries())
        this.#decode(one, rows[slot]!, framed, out.groups, out.refused);
      first = next;
    }
    return null;
  }

  #framing(topic: string, part: Part): Framing | null {
    const its = `${topic} ${part}`;
    const kept = this.#framings.get(its);
    const framing = kept === undefined ? this.#p.framing(topic, part) : kept;
    this.#framings.set(its, framing);
    return framing;
  }

  /** What this batch and those that wait behind it name and nobody has asked for: together it takes as long as one. */
  #unknown(batch: RawBatch, part: Part): readonly Named[] {
    const unknown = new Map<string, Named>();
    for (const b of new Set([batch, ...this.#p.waiting()])) {
      const { topic } = b.stream;
      const framing = this.#framing(topic, part);
      const from = { column: b[part], headers: b.headers, rows: b.rows };
      for (let first = 0; framing !== null && first < b.rows && unknown.size < MOST_ASKED; ) {
        first = framing(from, first, this.#framed);
        for (const named of namedBy(this.#framed, topic, part))
          if (this.#p.schemas.get(named) === undefined) unknown.set(named.name, named);
      }
    }
    return [...unknown.values()];
  }

  #decode(
    known: Known,
    rows: Int32Array,
    framed: Framed,
    decoded: DecodedGroup[],
    refused: RefusedRecord[],
  ): void {
    const { schemaId, decoder, fault } = known;
    const refuse = (i: number, f: Pick<DecodeFault, "code" | "path" | "reason">) => {
      const { code, path, reason: message } = f;
      refused.push({ row: framed.first + i, code, path, message, schemaId });
    };
    if (decoder === null) {
      if (fault !== null) for (const i of rows) refuse(i, fault);
      return;
    }
    const bad = new Set<number>();
    // Where a framing needs several passes the columns of the one before are still looked at.
    const again = decoded.some((g) => g.known === known);
    const columns = again ? decoder.fields.map((f) => builderOf(f.type)) : known.columns;
    for (const c of columns) c.reset();
    const count = decoder.decode(payloadsOf(framed, rows), columns, (f) => {
      bad.add(f.row);
      refuse(rows[f.row]!, f);
      if (known.open === null || f.code !== "decode.unknown_field" || f.path !== "") return;
      if (known.futile.has(f.reason)) return;
      this.news ??= { known, rows: [], reason: f.reason };
      if (this.news.rows.length < MOST_NEWS) this.news.rows.push(framed.first + rows[f.row]!);
    });
    if (count === 0) return;
    decoded.push({ known, rows: goodRows(rows, bad, framed.first), columns: columns.map((c) => c.finish()) });
  }
}

function namedBy({ schemas }: Framed, topic: string, part: Part): Named[] {
  return schemas.map(({ ref, message }) => {
    return { name: `${topic} ${part} ${refText(ref)} ${message ?? ""}`, topic, part, ref, message };
  });
}
