/**
 * Tables as Parquet: one file a set, a row group a batch. An engine encodes each batch as a small whole file; these are
 * joined under one footer. Refused rows go to a second object of the same set, so both appear together or not at all.
 */
import { JoinedFile } from "../../core/formats/parquet/join.ts";
import type { SetFiles } from "../../core/ports/lane-parts.ts";
import type { ObjectStore, StagedObject, Target } from "../../core/ports/object-store.ts";
import type { TableSink } from "../../core/ports/table-sink.ts";
import type { Span } from "../../core/records/stream.ts";
import type { TableBatch } from "../../core/types/table-batch.ts";
import { instantLeaves } from "../../core/types/utc-instants.ts";
import { setMetadata } from "./set-metadata.ts";

export interface TableWriterParts {
  readonly store: ObjectStore;
  /** One batch as a whole Parquet file. */
  readonly encode: (batch: TableBatch) => Uint8Array;
}

export interface TableWriterOptions {
  /** Folder of the files below the root of the store; empty: the root. */
  readonly folder: string;
  readonly pipeline: string;
  readonly sink: string;
  readonly version: string;
}

export const REJECTS_FOLDER = "_rejects";

/** An object that bytes are queued for; what a failed append did not take stays queued. */
class Output {
  readonly key: string;
  rows = 0;
  bytes = 0;
  #queue: Uint8Array[] = [];
  #staged: StagedObject | null = null;
  #target: Target | null = null;
  readonly #store: ObjectStore;

  constructor(store: ObjectStore, key: string) {
    this.#store = store;
    this.key = key;
  }

  get held(): number {
    return this.#queue.reduce((n, b) => n + b.length, 0);
  }

  push(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.bytes += bytes.length;
  }

  async flush(): Promise<void> {
    while (this.#queue.length > 0) {
      this.#staged ??= await this.#store.stage(this.key);
      await this.#staged.append(this.#queue[0]!);
      this.#queue.shift();
    }
  }

  async seal(): Promise<Target> {
    await this.flush();
    this.#target ??= await this.#staged!.seal(this.rows);
    return this.#target;
  }

  async abort(): Promise<void> {
    this.#queue = [];
    await this.#staged?.abort();
  }
}

export class ParquetTableWriter implements TableSink {
  readonly #o: TableWriterOptions;
  readonly #p: TableWriterParts;
  #id = "";
  #joined: JoinedFile | null = null;
  #file: Output | null = null;
  #rejects: Output | null = null;
  #finished = false;

  constructor(options: TableWriterOptions, parts: TableWriterParts) {
    this.#o = options;
    this.#p = parts;
  }

  open(id: string): void {
    this.#id = id;
    this.#joined = null;
    this.#file = null;
    this.#rejects = null;
    this.#finished = false;
  }

  write(batch: TableBatch): void {
    if (batch.rows === 0) return;
    if (this.#file === null || this.#joined === null) {
      this.#file = new Output(this.#p.store, join(this.#o.folder, `${this.#id}.parquet`));
      this.#joined = new JoinedFile(instantLeaves(batch.fields));
      this.#file.push(JoinedFile.head);
    }
    this.#file.push(this.#joined.add(this.#p.encode(batch)));
    this.#file.rows += batch.rows;
  }

  reject(lines: Uint8Array, rows: number): void {
    this.#rejects ??= new Output(this.#p.store, join(this.#o.folder, `${REJECTS_FOLDER}/${this.#id}.ndjson`));
    this.#rejects.push(lines);
    this.#rejects.rows += rows;
  }

  async flush(): Promise<void> {
    await this.#rejects?.flush();
    await this.#file?.flush();
  }

  get held(): number {
    return (this.#file?.held ?? 0) + (this.#rejects?.held ?? 0);
  }

  get size(): number {
    return (this.#file?.bytes ?? 0) + (this.#rejects?.bytes ?? 0);
  }

  async seal(spans: readonly Span[]): Promise<SetFiles> {
    if (this.#file !== null && this.#joined !== null && !this.#finished) {
      this.#file.push(
        this.#joined.finish(setMetadata(this.#o, this.#id, null, spans), `twg ${this.#o.version}`),
      );
      this.#finished = true;
    }
    const outputs = [this.#rejects, this.#file].filter((o) => o !== null);
    const targets: Target[] = [];
    for (const o of outputs) targets.push(await o.seal());
    const rows = this.#file?.rows ?? 0;
    return { targets, covered: false, rows, bytes: outputs.reduce((n, o) => n + o.bytes, 0) };
  }

  async abort(): Promise<void> {
    await this.#file?.abort();
    await this.#rejects?.abort();
    this.open("");
  }
}

function join(folder: string, name: string): string {
  return folder === "" ? name : `${folder}/${name}`;
}
