/**
 * An object on its way up: bytes gather in a buffer of one part's size; a full one goes up while the next gathers.
 * Whatever fails keeps its bytes and is sent again by the call that comes next.
 */
import { Failure } from "../../core/failure/failure.ts";
import type { StagedObject, Target } from "../../core/ports/object-store.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { encodeStaging, type UploadedPart } from "./s3-staging.ts";
import { abortUpload, type S3Uploads } from "./s3-uploads.ts";

export interface StagedOptions {
  readonly key: string;
  readonly token: string;
  readonly partBytes: number;
  /** Where it will be, for messages. */
  readonly at: string;
}

interface Part {
  readonly number: number;
  readonly bytes: Uint8Array;
  /** Null: not under way. */
  busy: Promise<void> | null;
}

/** Parts of one object that go up at a time, beside the one that gathers. */
const PARTS_UNDER_WAY = 2;
/** A buffer begins small, since most files of a wide path template stay small. */
const FIRST_BUFFER = 64 * 1024;
const ABORT_PATIENCE_MS = 5_000;

export class StagedUpload implements StagedObject {
  readonly key: string;
  readonly #o: StagedOptions;
  readonly #uploads: S3Uploads;
  readonly #clock: Clock;
  #upload: Promise<string> | null = null;
  /** An answer to the creation was lost: there may be an upload of this key that nobody knows. */
  #stray = false;
  #buffer = new Uint8Array(0);
  #fill = 0;
  #numbers = 0;
  #bytes = 0;
  /** Of the append that is being repeated: how much of it was taken before it failed. */
  #taken = 0;
  readonly #open: Part[] = [];
  readonly #done: UploadedPart[] = [];
  #ended = false;
  /** Ends requests that nobody waits for any more. */
  readonly #life = new AbortController();

  constructor(options: StagedOptions, uploads: S3Uploads, clock: Clock) {
    this.key = options.key;
    this.#o = options;
    this.#uploads = uploads;
    this.#clock = clock;
  }

  get held(): number {
    return this.#buffer.length + this.#open.reduce((n, p) => n + p.bytes.length, 0);
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#mustLive();
    while (this.#taken < bytes.length) {
      if (this.#fill === this.#o.partBytes) await this.#ship();
      this.#take(bytes);
    }
    this.#bytes += bytes.length;
    this.#taken = 0;
  }

  async seal(rows: number): Promise<Target> {
    this.#mustLive();
    // An append that failed half-way and was not repeated must not leave bytes behind the end.
    if (this.#taken > 0) throw new Failure("internal.bug", "sealed within an append", { at: this.#o.at });
    if (this.#fill > 0 || this.#numbers === 0) await this.#ship();
    await this.#settle(0);
    const upload = await this.#begun();
    if (this.#stray) await this.#dropStrays(upload);
    const staging = encodeStaging({ upload, token: this.#o.token, parts: this.#done });
    this.#ended = true;
    return { key: this.key, staging, bytes: this.#bytes, rows };
  }

  /** What cannot be removed within a few seconds is left to the sweep of the next start. */
  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#life.abort();
    this.#buffer = new Uint8Array(0);
    if (this.#upload === null) return;
    await Promise.race([this.#giveUp(this.#upload), sleep(this.#clock, ABORT_PATIENCE_MS)]);
  }

  async #giveUp(begun: Promise<string>): Promise<void> {
    try {
      const upload = await begun.catch(() => null);
      await Promise.allSettled(this.#open.map((p) => p.busy));
      this.#open.length = 0;
      if (upload !== null) await abortUpload(this.#uploads, this.key, upload);
      if (this.#stray) await this.#dropStrays(null);
    } catch {
      // The store is out of order; see above.
    }
  }

  #take(bytes: Uint8Array): void {
    const room = this.#o.partBytes - this.#fill;
    const piece = bytes.subarray(this.#taken, this.#taken + room);
    const size = this.#fill + piece.length;
    if (size > this.#buffer.length) {
      const grown = Math.min(this.#o.partBytes, Math.max(FIRST_BUFFER, size, 2 * this.#buffer.length));
      const larger = new Uint8Array(grown);
      larger.set(this.#buffer.subarray(0, this.#fill));
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.#fill);
    this.#fill = size;
    this.#taken += piece.length;
  }

  /** Sends the buffer off once there is room on the way. Nothing is changed if that fails. */
  async #ship(): Promise<void> {
    await this.#settle(PARTS_UNDER_WAY - 1);
    const part: Part = { number: ++this.#numbers, bytes: this.#buffer.subarray(0, this.#fill), busy: null };
    this.#buffer = new Uint8Array(0);
    this.#fill = 0;
    this.#open.push(part);
    this.#start(part);
  }

  async #settle(left: number): Promise<void> {
    while (this.#open.length > left) {
      const [part] = this.#open;
      if (part !== undefined) await (part.busy ?? this.#start(part));
    }
  }

  #start(part: Part): Promise<void> {
    const busy = this.#send(part);
    part.busy = busy;
    // The failure is thrown where it is waited for; until then the part stays, and is not under way.
    busy.catch(() => {
      part.busy = null;
    });
    return busy;
  }

  async #send(part: Part): Promise<void> {
    const sent = await this.#uploads.part(
      this.key,
      await this.#begun(),
      part.number,
      part.bytes,
      this.#life.signal,
    );
    this.#done[part.number - 1] = sent;
    this.#open.splice(this.#open.indexOf(part), 1);
  }

  #begun(): Promise<string> {
    const unsure = () => {
      this.#stray = true;
    };
    this.#upload ??= this.#uploads.create(this.key, this.#o.token, unsure).catch((e) => {
      this.#upload = null;
      throw e;
    });
    return this.#upload;
  }

  /** The key is ours alone, so whatever else is open under it is ours. What stays is swept by the next process. */
  async #dropStrays(known: string | null): Promise<void> {
    try {
      for (const u of await this.#uploads.under(this.key)) {
        if (u.key === this.key && u.upload !== known) await this.#uploads.abort(u.key, u.upload);
      }
      this.#stray = false;
    } catch {
      // It costs space only, and the next start looks again.
    }
  }

  #mustLive(): void {
    if (this.#ended)
      throw new Failure("internal.bug", "a staged object is used after its end", { at: this.#o.at });
  }
}
