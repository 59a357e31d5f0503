/** Raw in a table of PostgreSQL, read again: where what is of it, and its rows page by page. */
import { PgConnection } from "../adapters/postgres/client.ts";
import { type CountedRows, type RawPage, RawPages } from "../adapters/postgres/replay/raw-pages.ts";
import {
  type RawEntry,
  readLanded,
  readRawIndex,
  readUnindexed,
} from "../adapters/postgres/state/raw-index.ts";
import { readState } from "../adapters/postgres/state/streams.ts";
import { lookAtState, stateNames } from "../adapters/postgres/state/tables.ts";
import { quoted, quotedTable } from "../adapters/postgres/table/names.ts";
import { normalRanges, subtractRanges } from "../core/coverage/ranges.ts";
import { type CoverageState, EMPTY_STATE, type IndexEntry } from "../core/coverage/state.ts";
import { Failure } from "../core/failure/failure.ts";
import type { Span, StreamKey } from "../core/records/stream.ts";
import type { Wanted } from "../core/recovery/replay-order.ts";
import type { OpenedSet, SetPiece } from "../core/recovery/replay-pieces.ts";
import { rowsOf, type SetBytes, tableSets, UNCOUNTED } from "../core/recovery/table-sets.ts";
import type { ResolvedConfig, SinkOf } from "./config-file.ts";
import { postgresClientParts, preparedOf } from "./postgres-parts.ts";
import { streamIdOf } from "./stream-id.ts";

/** Of a page, unless one row is larger. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** Of a set: a connection is opened for each. */
const SET_BYTES = 32 * 1024 * 1024;

type Configured = Pick<ResolvedConfig, "pipeline" | "written" | "sinks" | "recovery">;

export class RawTable {
  readonly #sink: SinkOf<"postgres">;
  readonly #prepared: ReturnType<typeof preparedOf>;
  readonly #setBytes: number;
  readonly #positionBytes: number;
  #indexed: Promise<void> | null = null;
  /** Of streams with rows that no entry tells of, where all of them were there: how many of each part. */
  readonly #whole = new Map<StreamKey, readonly CountedRows[]>();

  constructor(config: Configured, sink: SinkOf<"postgres">) {
    this.#sink = sink;
    const prepared = preparedOf(config, sink);
    const { settings } = prepared;
    const applicationName = `${settings.applicationName} recovery`;
    this.#prepared = { ...prepared, settings: { ...settings, applicationName } };
    this.#setBytes = Math.min(SET_BYTES, config.recovery.window_bytes);
    this.#positionBytes = config.pipeline.record_size_est_bytes;
  }

  get #names() {
    return stateNames(this.#sink.state_schema);
  }

  state(): Promise<CoverageState> {
    return this.#connected(async (c) => {
      if ((await lookAtState(c, this.#names)) === null) return EMPTY_STATE;
      await c.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      const state = await readState(c, this.#names, this.#prepared.key);
      await c.script("COMMIT");
      return state;
    });
  }

  /** What is wanted, oldest first. */
  sets(wanted: Wanted): Promise<readonly IndexEntry[]> {
    return this.#connected(async (c) => {
      const entries = await readRawIndex(c, this.#names, this.#prepared.key, wanted);
      return await this.#packed(c, wanted, entries, { cut: this.#setBytes, set: this.#setBytes });
    });
  }

  /** The same, each stretch alone. */
  stretches(wanted: Wanted): Promise<readonly (IndexEntry & { readonly at: number | null })[]> {
    return this.#connected(async (c) => {
      const entries = await readRawIndex(c, this.#names, this.#prepared.key, wanted);
      const at = new Map(entries.map((e) => [`${e.stream} ${e.from}`, e.at]));
      const sets = await this.#packed(c, wanted, entries, { cut: Number.MAX_SAFE_INTEGER, set: 1 });
      return sets.map((s) => ({ ...s, at: at.get(`${s.spans[0]?.stream} ${s.spans[0]?.from}`) ?? null }));
    });
  }

  async #packed(c: PgConnection, wanted: Wanted, entries: readonly RawEntry[], most: SetBytes) {
    const sizes = new Map<StreamKey, number>();
    for (const stream of wanted.keys()) {
      const { rows, bytes } = await readLanded(c, this.#names, this.#prepared.key, stream);
      // As if every position had a row: a stretch that is cut too small costs a look, one too large room.
      sizes.set(stream, rows === 0 ? this.#positionBytes : bytes / rows);
    }
    return tableSets(wanted, entries, (s) => sizes.get(s) ?? this.#positionBytes, most);
  }

  /**
   * Looks where the pages of a set begin and end, and counts its rows on the way. Throws recovery.raw_missing where rows were deleted,
   * recovery.not_raw where there are more than landed, recovery.no_index.
   */
  async open(set: IndexEntry): Promise<OpenedSet> {
    const pages = this.#pages();
    try {
      const pieces: SetPiece[] = [];
      for (const [i, rows] of rowsOf(set).entries())
        pieces.push(...(await this.#piecesOf(pages, set.spans[i]!, rows)));
      return { pieces, close: () => pages.close() };
    } catch (e) {
      pages.close();
      throw e;
    }
  }

  /** All rows of it that landed are there. Throws recovery.not_raw and recovery.no_index as `open` does. */
  async isWhole(set: IndexEntry): Promise<boolean> {
    const pages = this.#pages();
    try {
      for (const [i, rows] of rowsOf(set).entries()) {
        const span = set.spans[i]!;
        await this.#demandIndex(pages, span);
        if (rows === UNCOUNTED) await this.#demandAll(pages, span);
        else demandRows(span, rows, sumOf(await pages.count(streamIdOf(span.stream), [span])));
      }
      return true;
    } catch (e) {
      if (e instanceof Failure && e.code === "recovery.raw_missing") return false;
      throw e;
    } finally {
      pages.close();
    }
  }

  async hasRows(): Promise<boolean> {
    const { table } = this.#prepared;
    const pipeline = this.#pipeline;
    // A table that the configuration names by mistake may have rows, too.
    const ours = pipeline === null ? "" : `WHERE ${quoted(`${this.#sink.metadata_prefix}pipeline`)} = $1`;
    return await this.#connected(async (c) => {
      const select = `SELECT FROM ${quotedTable(table)} ${ours} LIMIT 1`;
      const { rows } = await c.query(select, ...(pipeline === null ? [] : [pipeline]));
      return rows.length > 0;
    });
  }

  async #piecesOf(pages: RawPages, span: Span, rows: number): Promise<readonly SetPiece[]> {
    const { stream, next } = span;
    await this.#demandIndex(pages, span);
    const pieces: SetPiece[] = [];
    let found = 0;
    for (let { from } = span; from < next; ) {
      const page = await pages.page(streamIdOf(stream), { from, next }, PAGE_BYTES);
      if (page === null) break;
      pieces.push(pieceOf(pages, stream, page));
      found += page.rows;
      from = page.last + 1n;
    }
    // Behind the pages: what is there after them was there when they were found.
    if (rows === UNCOUNTED) await this.#demandAll(pages, span);
    else demandRows(span, rows, found);
    return pieces;
  }

  #demandIndex(pages: RawPages, { stream }: Span): Promise<void> {
    this.#indexed ??= pages.checkIndex(streamIdOf(stream));
    this.#indexed.catch(() => {
      this.#indexed = null;
    });
    return this.#indexed;
  }

  /**
   * Of what no entry tells of only the sum is known. Once all of it was there each part has a number as well, so that rows that are
   * deleted later, while this process goes on, are noticed.
   */
  async #demandAll(pages: RawPages, span: Span): Promise<void> {
    const { stream } = span;
    const counted = this.#whole.get(stream) ?? [];
    if (subtractRanges([span], normalRanges(counted)).length > 0) return await this.#countAll(pages, stream);
    for (const part of counted.filter((c) => c.from < span.next && span.from < c.next))
      demandRows({ stream, ...part }, part.rows, sumOf(await pages.count(streamIdOf(stream), [part])));
  }

  async #countAll(pages: RawPages, stream: StreamKey): Promise<void> {
    const { ranges, rows } = await this.#connected((c) =>
      readUnindexed(c, this.#names, this.#prepared.key, stream),
    );
    const [first, last] = [ranges[0], ranges.at(-1)];
    if (first === undefined || last === undefined) return;
    const counted = await pages.count(streamIdOf(stream), ranges);
    demandRows({ stream, from: first.from, next: last.next }, rows, sumOf(counted));
    this.#whole.set(stream, counted);
  }

  /** With row_key a row that was there already counts as landed, and may be another pipeline's. */
  get #pipeline(): string | null {
    return this.#sink.row_key ? null : this.#prepared.key.pipeline;
  }

  #pages(): RawPages {
    const { settings, table } = this.#prepared;
    return new RawPages(
      { settings, table, prefix: this.#sink.metadata_prefix, pipeline: this.#pipeline },
      postgresClientParts,
    );
  }

  async #connected<T>(work: (c: PgConnection) => Promise<T>): Promise<T> {
    const connection = await PgConnection.open(this.#prepared.settings, postgresClientParts);
    try {
      return await work(connection);
    } finally {
      connection.close();
    }
  }
}

function pieceOf(pages: RawPages, stream: StreamKey, page: RawPage): SetPiece {
  const { first, last, bytes } = page;
  return {
    ...{ form: "page", twoLives: false, turns: [{ stream, first, last }], bytes },
    fill: async (body) => ({ bytes: await pages.copy(streamIdOf(stream), page, body), release: null }),
  };
}

const sumOf = (counted: readonly CountedRows[]): number => counted.reduce((n, c) => n + c.rows, 0);

function demandRows({ stream, from, next }: Span, landed: number, found: number): void {
  if (found === landed) return;
  const at = `${stream} [${from}, ${next})`;
  if (found < landed)
    throw new Failure(
      "recovery.raw_missing",
      `of ${landed} rows of it that landed ${found} are in the raw table`,
      {
        at,
        hint: "Were rows deleted? `twg inspect coverage -c FILE --record-lost` records what cannot be recovered as lost",
      },
    );
  throw new Failure("recovery.not_raw", `${landed} rows of it landed, and ${found} are in the raw table`, {
    at,
    hint: "Have rows been copied within the table, or does another pipeline of this name write it?",
  });
}
