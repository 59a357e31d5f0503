/**
 * The Parquet sink's end in a lane: one open file per folder, encoded by core/formats/parquet, staged through the
 * object store. Pages are compressed as records come; only finished row groups wait for `flush`.
 */
import { type Codecs, zstdBound } from "../../core/compression/codec.ts";
import { Failure } from "../../core/failure/failure.ts";
import { PageContext } from "../../core/formats/parquet/page.ts";
import { RawFile } from "../../core/formats/parquet/raw-file.ts";
import { SlabPool } from "../../core/formats/parquet/slabs.ts";
import type { Authority } from "../../core/ports/coverage.ts";
import type { RawWriter, SetFiles } from "../../core/ports/lane-parts.ts";
import type { ObjectStore, StagedObject, Target } from "../../core/ports/object-store.ts";
import type { RawBatch } from "../../core/records/raw-batch.ts";
import type { Span } from "../../core/records/stream.ts";
import type { Clock } from "../../core/time/clock.ts";
import { setMetadata } from "./set-metadata.ts";
import type { ParquetSinkOptions } from "./spec.ts";
import { PathTemplate } from "./template.ts";

export interface ParquetWriterOptions
  extends Pick<
    ParquetSinkOptions,
    "path" | "row_group_bytes" | "compression" | "compression_level" | "metadata_prefix" | "max_open_files"
  > {
  readonly pipeline: string;
  readonly sink: string;
  readonly version: string;
}

export interface ParquetWriterParts {
  readonly store: ObjectStore;
  readonly codecs: Codecs;
  readonly clock: Clock;
}

interface OpenFile {
  readonly key: string;
  readonly file: RawFile;
  staged: StagedObject | null;
  finished: boolean;
  target: Target | null;
}

export class ParquetWriter implements RawWriter {
  readonly #o: ParquetWriterOptions;
  readonly #p: ParquetWriterParts;
  readonly #template: PathTemplate;
  readonly #context: PageContext;
  readonly #files = new Map<string, OpenFile>();
  #id: string | null = null;

  constructor(options: ParquetWriterOptions, parts: ParquetWriterParts) {
    this.#o = options;
    this.#p = parts;
    this.#template = new PathTemplate(options.path, options.pipeline);
    const level = options.compression_level;
    const zstd = {
      name: "zstd",
      bound: zstdBound,
      compress: (input: Uint8Array, output: Uint8Array) => parts.codecs.zstdCompress(input, output, level),
    } as const;
    this.#context = new PageContext(
      options.compression === "zstd" ? zstd : null,
      // As much as a row group is at most: what a full one leaves behind is there for the next.
      new SlabPool(options.row_group_bytes),
      parts.codecs.crc32,
    );
  }

  get held(): number {
    let n = this.#context.held;
    for (const f of this.#files.values()) n += f.file.held;
    return n;
  }

  get largest(): number {
    let n = 0;
    for (const f of this.#files.values()) n = Math.max(n, f.file.size);
    return n;
  }

  open(id: string): void {
    if (this.#files.size > 0) throw new Failure("internal.bug", `set ${id} begins while ${this.#id} is open`);
    this.#id = id;
  }

  write(batch: RawBatch, _authority?: Authority, first = 0): number {
    const now = this.#p.clock.now();
    let taken = first;
    this.#template.eachFolder(batch, ({ folder, from: begin, to }) => {
      if (to <= first) return true;
      const from = Math.max(begin, first);
      if (!this.#files.has(folder) && this.#files.size >= this.#o.max_open_files) return false;
      this.#file(folder).file.append(batch, from, to, now);
      taken = to;
      return true;
    });
    return taken;
  }

  async flush(): Promise<void> {
    for (const f of this.#files.values()) await this.#flushFile(f);
  }

  async seal(spans: readonly Span[]): Promise<SetFiles> {
    const metadata = setMetadata(this.#o, this.#id ?? "", this.#files.size, spans);
    const targets: Target[] = [];
    for (const f of this.#files.values()) targets.push(await this.#sealFile(f, metadata));
    this.#files.clear();
    const sum = (of: (t: Target) => number) => targets.reduce((n, t) => n + of(t), 0);
    return { targets, covered: false, rows: sum((t) => t.rows), bytes: sum((t) => t.bytes) };
  }

  async abort(): Promise<void> {
    const files = [...this.#files.values()];
    this.#files.clear();
    for (const f of files) {
      f.file.drop();
      // What cannot be removed now is swept at the next start.
      await f.staged?.abort().catch(() => {});
    }
  }

  #file(folder: string): OpenFile {
    const known = this.#files.get(folder);
    if (known !== undefined) return known;
    if (this.#id === null) throw new Failure("internal.bug", "rows before a set was opened");
    const name = `${this.#o.pipeline}-${this.#id}-${this.#files.size}.parquet`;
    const file = new RawFile({
      context: this.#context,
      prefix: this.#o.metadata_prefix,
      pipeline: this.#o.pipeline,
      version: this.#o.version,
      rowGroupBytes: this.#o.row_group_bytes,
    });
    const key = folder === "" ? name : `${folder}/${name}`;
    const opened: OpenFile = { key, file, staged: null, finished: false, target: null };
    this.#files.set(folder, opened);
    return opened;
  }

  async #flushFile(f: OpenFile): Promise<void> {
    const { out } = f.file;
    for (let bytes = out.first(); bytes !== null; bytes = out.first()) {
      f.staged ??= await this.#p.store.stage(f.key);
      await f.staged.append(bytes);
      out.dropFirst();
    }
  }

  /** Each step is remembered, so that a seal that failed half-way goes on where it was. */
  async #sealFile(f: OpenFile, metadata: readonly (readonly [string, string])[]): Promise<Target> {
    if (f.target !== null) return f.target;
    if (!f.finished) {
      f.file.finish(metadata);
      f.finished = true;
    }
    await this.#flushFile(f);
    if (f.staged === null) throw new Failure("internal.bug", "a finished file has no bytes", { at: f.key });
    f.target = await f.staged.seal(f.file.rows);
    f.file.drop();
    return f.target;
  }
}
