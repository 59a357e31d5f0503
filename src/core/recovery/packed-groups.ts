/** Row groups in one buffer, on their way to a lane: a head, where each ends, then their bytes. */
import { Failure } from "../failure/failure.ts";

const WORD = 4;
const HEAD_WORDS = 3;
const ONE_FILE = 1;
const TWO_LIVES = 2;

export interface PackedGroups {
  /** Of the bundle: buffers are used again, so they do not tell bundles apart. */
  readonly serial: number;
  readonly groups: readonly Uint8Array[];
  /** They are of one file, so rows of a stream follow one another. */
  readonly oneFile: boolean;
  /** A topic that was made anew has positions in them twice: record ids tell its lives apart. */
  readonly twoLives: boolean;
}

const headBytes = (groups: number): number => (HEAD_WORDS + groups) * WORD;

export function packedBytes({ groups }: Pick<PackedGroups, "groups">): number {
  return groups.reduce((n, g) => n + g.length, headBytes(groups.length));
}

/** `buffer` has room for `packedBytes`. */
export function packGroups({ serial, groups, oneFile, twoLives }: PackedGroups, buffer: ArrayBuffer): void {
  const view = new DataView(buffer);
  const bytes = new Uint8Array(buffer);
  view.setUint32(0, (oneFile ? ONE_FILE : 0) | (twoLives ? TWO_LIVES : 0), true);
  view.setUint32(WORD, groups.length, true);
  view.setUint32(2 * WORD, serial, true);
  let at = headBytes(groups.length);
  for (const [i, g] of groups.entries()) {
    bytes.set(g, at);
    at += g.length;
    view.setUint32((HEAD_WORDS + i) * WORD, at, true);
  }
}

export function unpackGroups(bytes: Uint8Array): PackedGroups {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = view.getUint32(WORD, true);
  let at = headBytes(count);
  const groups = Array.from({ length: count }, (_, i) => {
    const end = view.getUint32((HEAD_WORDS + i) * WORD, true);
    if (end < at || end > bytes.length) throw new Failure("internal.bug", "packed row groups do not fit");
    const group = bytes.subarray(at, end);
    at = end;
    return group;
  });
  const flags = view.getUint32(0, true);
  const [oneFile, twoLives] = [(flags & ONE_FILE) !== 0, (flags & TWO_LIVES) !== 0];
  return { serial: view.getUint32(2 * WORD, true), groups, oneFile, twoLives };
}
