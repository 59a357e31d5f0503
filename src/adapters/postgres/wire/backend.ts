/**
 * What a server says: byte type | int32 length | body. `MessageFramer` cuts the stream, `parseMessage` reads one body.
 * Sizes are checked before memory is taken; a first byte or size that is none tells who really answers.
 */
import { ByteReader } from "../../../core/bytes/reader.ts";
import { Failure } from "../../../core/failure/failure.ts";

/** Far above what our statements return; a broken peer cannot take the memory. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** Types of messages that a server sends. */
const KNOWN = "RKSZENTDCGHWI123sntAcVdv";
const COPY_DATA = "d".charCodeAt(0);

/** Fields of an ErrorResponse or NoticeResponse that we use, by their letters. */
export interface ServerNotice {
  readonly severity: string;
  readonly sqlstate: string;
  readonly message: string;
  readonly hint: string | null;
  readonly where: string | null;
  readonly schema: string | null;
  readonly table: string | null;
  readonly column: string | null;
  readonly constraint: string | null;
}

export type Authentication =
  | { readonly kind: "ok" | "cleartext" }
  | { readonly kind: "md5"; readonly salt: Uint8Array }
  | { readonly kind: "sasl"; readonly mechanisms: readonly string[] }
  | { readonly kind: "sasl_continue" | "sasl_final"; readonly data: Uint8Array }
  | { readonly kind: "other"; readonly code: number };

export type ServerMessage =
  | { readonly t: "authentication"; readonly auth: Authentication }
  | { readonly t: "key"; readonly processId: number; readonly secret: number }
  | { readonly t: "parameter"; readonly name: string; readonly value: string }
  /** I idle, T in a transaction, E in a failed one. */
  | { readonly t: "ready"; readonly status: string }
  | { readonly t: "error" | "notice"; readonly notice: ServerNotice }
  | { readonly t: "row"; readonly values: readonly (string | null)[] }
  | { readonly t: "complete"; readonly tag: string }
  | { readonly t: "copy_in" }
  /** A piece of what a COPY TO gives: with binary rows one row, or the head, or the end. */
  | { readonly t: "copy_data"; readonly bytes: Uint8Array }
  /** Of no interest: parse and bind complete, row description, notifications and the like. */
  | { readonly t: "other" };

export class MessageFramer {
  readonly #at: string;
  readonly #message: (m: ServerMessage) => void;
  readonly #head = new Uint8Array(5);
  #headRead = 0;
  #body: Uint8Array | null = null;
  #filled = 0;
  #first = true;
  /** Of a piece of a COPY TO, whose rows may be larger than any other message. */
  maxCopyBytes = 0;

  constructor(at: string, message: (m: ServerMessage) => void) {
    this.#at = at;
    this.#message = message;
  }

  /** Throws a Failure if the bytes are no messages; the framer is of no use after that. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length || this.#body?.length === 0) {
      if (this.#body === null) at = this.#readHead(chunk, at);
      else at = this.#fill(this.#body, chunk, at);
    }
  }

  #readHead(chunk: Uint8Array, at: number): number {
    while (this.#headRead < 5 && at < chunk.length) this.#head[this.#headRead++] = chunk[at++]!;
    if (this.#headRead < 5) return at;
    const h = this.#head;
    const size = ((h[1]! << 24) | (h[2]! << 16) | (h[3]! << 8) | h[4]!) - 4;
    const known = KNOWN.includes(String.fromCharCode(h[0]!));
    const most = h[0] === COPY_DATA ? Math.max(this.maxCopyBytes, MAX_MESSAGE_BYTES) : MAX_MESSAGE_BYTES;
    if (!known || size < 0 || size > most) throw this.#foreign(size);
    this.#first = false;
    this.#body = new Uint8Array(size);
    this.#filled = 0;
    return at;
  }

  #fill(body: Uint8Array, chunk: Uint8Array, at: number): number {
    const take = Math.min(body.length - this.#filled, chunk.length - at);
    body.set(chunk.subarray(at, at + take), this.#filled);
    this.#filled += take;
    if (this.#filled === body.length) {
      this.#body = null;
      this.#headRead = 0;
      this.#message(parseMessage(this.#head[0]!, body, this.#at));
    }
    return at + take;
  }

  #foreign(size: number): Failure {
    const at = this.#at;
    const shown = String.fromCharCode(...this.#head).replace(/[^\x20-\x7e]/g, ".");
    if (this.#first) {
      return new Failure("postgres.not_postgres", `${at} answers with "${shown}"`, {
        at,
        hint: "Another service listens there: check host and port of the url",
      });
    }
    return new Failure("postgres.response_invalid", `a message "${shown}" of ${size} bytes from ${at}`, {
      at,
    });
  }
}

/** Throws postgres.response_invalid where the body is not what its type says. */
export function parseMessage(type: number, body: Uint8Array, at: string): ServerMessage {
  try {
    return parse(String.fromCharCode(type), body, at);
  } catch (e) {
    if (!(e instanceof Failure) || !e.code.startsWith("bytes.")) throw e;
    throw new Failure("postgres.response_invalid", `a message that cannot be read: ${e.message}`, {
      at,
      cause: e,
    });
  }
}

function parse(type: string, body: Uint8Array, at: string): ServerMessage {
  const r = new ByteReader(body, 0, body.length, at);
  switch (type) {
    case "R":
      return { t: "authentication", auth: authentication(r) };
    case "K":
      return { t: "key", processId: r.i32(), secret: r.i32() };
    case "S":
      return { t: "parameter", name: cstring(r), value: cstring(r) };
    case "Z":
      return { t: "ready", status: String.fromCharCode(r.u8()) };
    case "E":
      return { t: "error", notice: notice(r) };
    case "N":
      return { t: "notice", notice: notice(r) };
    case "D":
      return { t: "row", values: row(r) };
    case "C":
      return { t: "complete", tag: cstring(r) };
    case "G":
      return { t: "copy_in" };
    case "d":
      return { t: "copy_data", bytes: body };
    default:
      return { t: "other" };
  }
}

/** Up to the next NUL. */
function cstring(r: ByteReader): string {
  const bytes: number[] = [];
  for (let b = r.u8(); b !== 0; b = r.u8()) bytes.push(b);
  // Not fatal: messages of a server in another encoding before the start-up is done must still be shown.
  return new TextDecoder().decode(new Uint8Array(bytes));
}

function authentication(r: ByteReader): Authentication {
  const code = r.i32();
  switch (code) {
    case 0:
      return { kind: "ok" };
    case 3:
      return { kind: "cleartext" };
    case 5:
      return { kind: "md5", salt: r.view(4).slice() };
    case 10: {
      const mechanisms: string[] = [];
      for (let m = cstring(r); m !== ""; m = cstring(r)) mechanisms.push(m);
      return { kind: "sasl", mechanisms };
    }
    case 11:
      return { kind: "sasl_continue", data: r.view(r.remaining).slice() };
    case 12:
      return { kind: "sasl_final", data: r.view(r.remaining).slice() };
    default:
      return { kind: "other", code };
  }
}

function notice(r: ByteReader): ServerNotice {
  const fields = new Map<string, string>();
  for (let letter = r.u8(); letter !== 0; letter = r.u8())
    fields.set(String.fromCharCode(letter), cstring(r));
  return {
    severity: fields.get("V") ?? fields.get("S") ?? "ERROR",
    sqlstate: fields.get("C") ?? "XX000",
    message: fields.get("M") ?? "no message",
    hint: fields.get("H") ?? null,
    where: fields.get("W") ?? null,
    schema: fields.get("s") ?? null,
    table: fields.get("t") ?? null,
    column: fields.get("c") ?? null,
    constraint: fields.get("n") ?? null,
  };
}

function row(r: ByteReader): (string | null)[] {
  const count = r.u16();
  const values: (string | null)[] = [];
  for (let i = 0; i < count; i++) {
    const size = r.i32();
    values.push(size < 0 ? null : r.utf8(size));
  }
  return values;
}
