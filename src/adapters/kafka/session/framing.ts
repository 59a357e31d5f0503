/**
 * Cuts a byte stream in responses: int32 size, then that many bytes. Each response lands in one piece of memory that
 * the receiver provides once the size is known, so that every byte is copied exactly once, chunk to response.
 *
 * The size is checked before memory is asked for. A size that is no size tells who really answers: `HTTP`, a TLS
 * alert (0x15 0x03) or another text protocol.
 */
import { Failure } from "../../../core/failure/failure.ts";

export interface ResponseReceiver {
  /** Memory of exactly `size` bytes for the next response. */
  memory(size: number): Uint8Array;
  /** That memory, filled. Begins with the correlation id. */
  response(bytes: Uint8Array): void;
}

/** The correlation id alone. */
const MIN_RESPONSE_BYTES = 4;

export class ResponseFramer {
  readonly #receiver: ResponseReceiver;
  readonly #maxBytes: number;
  readonly #at: string;
  readonly #size = new Uint8Array(4);
  #sizeRead = 0;
  #memory: Uint8Array | null = null;
  #filled = 0;

  /** `maxBytes` guards memory: it is far above fetch limits, since a first batch may exceed those (KIP-74). */
  constructor(receiver: ResponseReceiver, maxBytes: number, at: string) {
    this.#receiver = receiver;
    this.#maxBytes = maxBytes;
    this.#at = at;
  }

  /** The memory of a response that will not be completed, null if there is none. */
  abandon(): Uint8Array | null {
    const memory = this.#memory;
    this.#memory = null;
    this.#sizeRead = 0;
    return memory;
  }

  /** Throws a Failure if the bytes are not a response; the framer is of no use after that. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#memory === null) at = this.#readSize(chunk, at);
      else at = this.#fill(this.#memory, chunk, at);
    }
  }

  /** Where the next bytes of the response belong; null: its size is not known yet. */
  get space(): Uint8Array | null {
    return this.#memory === null ? null : this.#memory.subarray(this.#filled);
  }

  /** So many bytes were written to the start of `space`. */
  placed(bytes: number): void {
    const memory = this.#memory!;
    this.#filled += bytes;
    if (this.#filled === memory.length) this.#complete(memory);
  }

  #complete(memory: Uint8Array): void {
    this.#memory = null;
    this.#sizeRead = 0;
    this.#receiver.response(memory);
  }

  #readSize(chunk: Uint8Array, at: number): number {
    while (this.#sizeRead < 4 && at < chunk.length) this.#size[this.#sizeRead++] = chunk[at++]!;
    if (this.#sizeRead < 4) return at;
    const s = this.#size;
    const size = (s[0]! << 24) | (s[1]! << 16) | (s[2]! << 8) | s[3]!;
    if (size < MIN_RESPONSE_BYTES || size > this.#maxBytes) throw this.#notASize(size);
    this.#memory = this.#receiver.memory(size);
    this.#filled = 0;
    return at;
  }

  #fill(memory: Uint8Array, chunk: Uint8Array, at: number): number {
    const take = Math.min(memory.length - this.#filled, chunk.length - at);
    memory.set(at === 0 && take === chunk.length ? chunk : chunk.subarray(at, at + take), this.#filled);
    this.placed(take);
    return at + take;
  }

  #notASize(size: number): Failure {
    const s = this.#size;
    const at = this.#at;
    if (s[0] === 0x15 && s[1] === 0x03) {
      return new Failure("kafka.tls_expected", `${at} answers with a TLS alert`, {
        at,
        hint: "The port wants TLS: set [source.tls], or use the plain-text port",
      });
    }
    const printable = s.every((b) => b >= 0x20 && b < 0x7f);
    const text = printable ? String.fromCharCode(...s) : "";
    if (text === "HTTP") {
      return new Failure("kafka.not_kafka", `${at} answers with HTTP`, {
        at,
        hint: "A web server listens there: check source.bootstrap",
      });
    }
    if (printable || size < MIN_RESPONSE_BYTES) {
      const seen = printable ? `the text "${text}"` : `a response size of ${size}`;
      return new Failure("kafka.not_kafka", `${at} answers with ${seen}`, {
        at,
        hint: "Another service listens there: check source.bootstrap",
      });
    }
    return new Failure(
      "kafka.response_too_large",
      `${at} announces ${size} bytes, allowed ${this.#maxBytes}`,
      {
        at,
        hint: "Either the peer is not Kafka, or one batch is larger than the guard",
      },
    );
  }
}
