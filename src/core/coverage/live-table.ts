/**
 * The schema of a table that is a folder of files, for all who write into it: lanes, restarts, members of a group. It lies
 * in one small object beside the coverage and changes by compare-and-swap alone. It only grows, and it is durable
 * before anybody writes a file by it: the schema may lead the files, files never lead the schema.
 */
import { Failure } from "../failure/failure.ts";
import type { VersionedStore } from "../ports/versioned-store.ts";
import { evolve } from "../schema/evolution.ts";
import { asStored, FOLDER_TABLE } from "../schema/folder-table.ts";
import { sameType } from "../types/cast-column.ts";
import type { ColumnField } from "../types/table-batch.ts";
import { encodeTable, parseTable, type StoredColumn } from "./table-json.ts";

export interface LiveTableParts {
  readonly versions: VersionedStore;
  /** Unique to this process; part of its tags. */
  readonly instance: string;
  /** Columns of the newest files that lie there already, oldest first; asked only where nothing is stored yet. */
  readonly files: () => Promise<readonly FileColumns[]>;
}

export interface FileColumns {
  readonly name: string;
  readonly fields: readonly ColumnField[];
}

/** `fields`: the table's from now on, durably, as far as rows have come for them; they hold all that was asked for. */
export type Grown = { readonly fields: readonly ColumnField[] } | { readonly differences: readonly string[] };

interface Known {
  /** Null: nothing is stored. */
  readonly version: number | null;
  readonly fields: readonly StoredColumn[];
}

/** Swaps that are lost in a row, with a table that has grown every time, before something must be wrong. */
const MAX_ROUNDS = 100;

export class LiveTable {
  readonly #p: LiveTableParts;
  #known: Known | null = null;
  #prepared = false;
  #serial = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: LiveTableParts) {
    this.#p = parts;
  }

  /**
   * The table with room for these columns, or why it cannot have them. One at a time; a failure of the store changes
   * nothing. Since a table only grows, what is known to be in it needs no look.
   */
  grow(fields: readonly ColumnField[]): Promise<Grown> {
    const turn = this.#last.then(() => this.#grow(fields));
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #grow(wanted: readonly ColumnField[]): Promise<Grown> {
    if (!this.#prepared) await this.#p.versions.prepare();
    this.#prepared = true;
    let now = this.#known ?? (await this.#read());
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const typed = named(now.fields, wanted);
      const next = evolve(typed, wanted, FOLDER_TABLE);
      if (next.kind === "refused") return { differences: next.differences };
      const fields: readonly StoredColumn[] = next.fields;
      const stored = now.version !== null || fields.length === 0;
      if (fields === now.fields && stored) return { fields: known(fields) };
      const version = (now.version ?? 0) + 1;
      const tag = `${this.#p.instance}.t${this.#serial++}`;
      const outcome = await this.#p.versions.write(now.version, encodeTable(fields, version), tag);
      if (outcome === "won") {
        this.#known = { version, fields };
        return { fields: known(fields) };
      }
      // Whether it was ours that landed or another's: what is there now is judged again.
      now = await this.#read();
    }
    throw new Failure("coverage.unavailable", `${MAX_ROUNDS} writes in a row were lost to others`, {
      at: this.#p.versions.place,
    });
  }

  async #read(): Promise<Known> {
    const found = await this.#p.versions.read();
    if (found === null) {
      const fields = this.#ofFiles(await this.#p.files());
      return { version: null, fields: fields.map((f) => ({ ...f, stored: true })) };
    }
    const { version } = found;
    this.#known = { version, fields: parseTable(found.bytes, found.name, version) };
    return this.#known;
  }

  #ofFiles(files: readonly FileColumns[]): readonly ColumnField[] {
    let fields: readonly ColumnField[] = [];
    for (const f of files) {
      const next = evolve(fields, f.fields, FOLDER_TABLE);
      if (next.kind === "refused")
        throw new Failure(
          "table.mismatch",
          `the files that lie there are not of one table: ${next.differences.join("; ")}`,
          {
            at: f.name,
            hint: "Move the files of one kind to another folder, or give the sink a new path",
          },
        );
      ({ fields } = next);
    }
    return fields;
  }
}

/** Columns that files alone told get the types of rows for them, where those are stored so. */
function named(now: readonly StoredColumn[], wanted: readonly ColumnField[]): readonly StoredColumn[] {
  if (!now.some((f) => f.stored)) return now;
  const fields = now.map((f): StoredColumn => {
    const like = f.stored ? wanted.find((w) => w.name === f.name) : undefined;
    if (like === undefined) return f;
    return { name: f.name, type: sameType(asStored(like.type), f.type) ? like.type : f.type, nullable: true };
  });
  return fields.some((f, i) => f !== now[i]) ? fields : now;
}

/** Rows of others have other types yet for what files alone told. */
function known(fields: readonly StoredColumn[]): readonly ColumnField[] {
  return fields.filter((f) => f.stored !== true);
}

export interface GrownTables {
  /** In all tables that are not named below. */
  readonly fields: readonly ColumnField[];
  readonly refused: ReadonlyMap<number, readonly string[]>;
  /** Of those nothing is known for now. */
  readonly failed: ReadonlyMap<number, unknown>;
}

/** One table's columns for several sinks, each of which has its own durable schema. `grow`: of one of them. */
export async function growTables(
  sinks: readonly number[],
  fields: readonly ColumnField[],
  grow: (sink: number, fields: readonly ColumnField[]) => Promise<Grown>,
): Promise<GrownTables> {
  const refused = new Map<number, readonly string[]>();
  const failed = new Map<number, unknown>();
  const asked = async (sink: number, wanted: readonly ColumnField[]): Promise<readonly ColumnField[]> => {
    try {
      const grown = await grow(sink, wanted);
      if ("fields" in grown) return grown.fields;
      refused.set(sink, grown.differences);
    } catch (e) {
      failed.set(sink, e);
    }
    return wanted;
  };
  let all = fields;
  for (const sink of sinks) all = await asked(sink, all);
  // What those behind had is new to those before them.
  for (const sink of sinks.slice(0, -1)) if (!refused.has(sink) && !failed.has(sink)) await asked(sink, all);
  return { fields: all, refused, failed };
}
