/**
 * What a client says in PostgreSQL's protocol 3.0 (documentation, chapter "Frontend/Backend Protocol"):
 *
 *   start-up   int32 length | int32 code | ...          (no type byte)
 *   others     byte type | int32 length | ...           (length counts itself, not the type)
 *
 * Strings are UTF-8 with a closing NUL; one inside would end them early, so it is refused.
 */
import { ByteWriter } from "../../../core/bytes/writer.ts";
import { Failure } from "../../../core/failure/failure.ts";

const PROTOCOL_3_0 = 196_608;
const SSL_REQUEST = 80_877_103;
const CANCEL_REQUEST = 80_877_102;
const UTF8 = new TextEncoder();

const byte = (letter: string): number => letter.charCodeAt(0);

function cstring(w: ByteWriter, text: string): void {
  if (text.includes("\0"))
    throw new Failure("internal.bug", "a string with a NUL in a message to PostgreSQL");
  w.raw(UTF8.encode(text)).i8(0);
}

function untyped(code: number, body: (w: ByteWriter) => void): Uint8Array {
  const w = new ByteWriter();
  const at = w.reserveI32();
  w.i32(code);
  body(w);
  return w.patchI32(at, w.length).copy();
}

function message(w: ByteWriter, type: string, body: (w: ByteWriter) => void): void {
  w.i8(byte(type));
  const at = w.reserveI32();
  body(w);
  w.patchI32(at, w.length - at);
}

function one(type: string, body: (w: ByteWriter) => void = () => {}): Uint8Array {
  const w = new ByteWriter();
  message(w, type, body);
  return w.copy();
}

export const sslRequest = (): Uint8Array => untyped(SSL_REQUEST, () => {});

export function startup(parameters: Readonly<Record<string, string>>): Uint8Array {
  return untyped(PROTOCOL_3_0, (w) => {
    for (const [name, value] of Object.entries(parameters)) {
      cstring(w, name);
      cstring(w, value);
    }
    w.i8(0);
  });
}

export function cancelRequest(processId: number, secret: number): Uint8Array {
  return untyped(CANCEL_REQUEST, (w) => w.i32(processId).i32(secret));
}

export const password = (text: string): Uint8Array => one("p", (w) => cstring(w, text));

export function saslInitial(mechanism: string, first: Uint8Array): Uint8Array {
  return one("p", (w) => {
    cstring(w, mechanism);
    w.sizedBytes(first);
  });
}

export const saslResponse = (bytes: Uint8Array): Uint8Array => one("p", (w) => w.raw(bytes));

/** One or more statements in the simple protocol: their text as it is, no parameters. */
export const simpleQuery = (sql: string): Uint8Array => one("Q", (w) => cstring(w, sql));

/** A statement with its parameters as text; null is SQL's. */
export interface Statement {
  readonly sql: string;
  readonly parameters: readonly (string | null)[];
}

/** PostgreSQL counts parameters in an int16. */
const MAX_PARAMETERS = 65_535;

/**
 * The statements in the extended protocol, unnamed (so that nothing is left behind in a pooled server), results as
 * text. One Sync at the end: the first error skips all that follow.
 */
export function pipeline(statements: readonly Statement[]): Uint8Array {
  const w = new ByteWriter();
  for (const { sql, parameters } of statements) {
    if (parameters.length > MAX_PARAMETERS) throw new Failure("internal.bug", "too many parameters");
    message(w, "P", (m) => {
      m.i8(0);
      cstring(m, sql);
      m.i16(0);
    });
    message(w, "B", (m) => {
      m.i8(0).i8(0).i16(0).u16(parameters.length);
      for (const p of parameters) m.sizedBytes(p === null ? null : UTF8.encode(p));
      m.i16(0);
    });
    message(w, "D", (m) => m.i8(byte("P")).i8(0));
    message(w, "E", (m) => m.i8(0).i32(0));
  }
  message(w, "S", () => {});
  return w.copy();
}

/** Bytes of a CopyData message before its content. */
export const COPY_DATA_HEAD = 5;

/** Fills in the head of a CopyData message whose `size` bytes of content follow it. */
export function copyDataHead(into: Uint8Array, at: number, size: number): void {
  const length = size + 4;
  into[at] = byte("d");
  into[at + 1] = length >>> 24;
  into[at + 2] = length >>> 16;
  into[at + 3] = length >>> 8;
  into[at + 4] = length;
}

export const copyDone = (): Uint8Array => one("c");
export const terminate = (): Uint8Array => one("X");
