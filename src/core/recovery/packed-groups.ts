/** A piece of a set on its way to a lane: a head that says how it is to be read, then a row group, where some lie, or rows of a table. */
import { Failure } from "../failure/failure.ts";

const WORD = 4;
const HEAD_BYTES = 4 * WORD;
const FORMS = ["group", "files", "page"] as const;
const FORM_BITS = 3;
const TWO_LIVES = 4;
const TEXT = new TextDecoder();
const UTF8 = new TextEncoder();

export interface PackedPiece {
  /** Of the bundle: buffers are used again, so they do not tell bundles apart. */
  readonly serial: number;
  /**
   * group: `body` is a row group as a file of its own, in which the positions of each stream rise. files: it is the
   * paths of such files (`packPaths`), which belong together in no order. page: rows of a raw table, of one stream in order.
   */
  readonly form: (typeof FORMS)[number];
  /** A topic that was made anew has positions in them twice: record ids tell its lives apart. */
  readonly twoLives: boolean;
  readonly body: Uint8Array;
}

export const packedBytes = (body: number): number => HEAD_BYTES + body;

/** Where the body goes in a buffer of `packedBytes` or more. */
export function packedBody(buffer: ArrayBuffer): Uint8Array {
  return new Uint8Array(buffer, HEAD_BYTES);
}

export function packHead(
  buffer: ArrayBuffer,
  { serial, form, twoLives }: Omit<PackedPiece, "body">,
  /** Of the body. */
  bytes: number,
): void {
  const view = new DataView(buffer);
  view.setUint32(0, FORMS.indexOf(form) | (twoLives ? TWO_LIVES : 0), true);
  view.setUint32(WORD, serial, true);
  view.setUint32(2 * WORD, bytes, true);
}

export function unpackPiece(bytes: Uint8Array): PackedPiece {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(2 * WORD, true);
  if (HEAD_BYTES + length > bytes.length) throw new Failure("internal.bug", "a packed piece does not fit");
  const flags = view.getUint32(0, true);
  return {
    serial: view.getUint32(WORD, true),
    form: FORMS[flags & FORM_BITS]!,
    twoLives: (flags & TWO_LIVES) !== 0,
    body: bytes.subarray(HEAD_BYTES, HEAD_BYTES + length),
  };
}

export function packPaths(paths: readonly string[]): Uint8Array {
  return UTF8.encode(paths.join("\n"));
}

export function unpackPaths(body: Uint8Array): readonly string[] {
  return body.length === 0 ? [] : TEXT.decode(body).split("\n");
}
